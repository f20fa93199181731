"""Spark as the settings say: its Java, its master, and the supervisor of its driver."""

from importlib.util import find_spec
from pathlib import Path

from noetl.bootstrap.settings import Settings, cloud_environment, spark_environment
from noetl.bootstrap.store_keys import with_keys
from noetl.kernel.errors import JavaMissing, NoETLError, SettingInvalid, SparkMissing
from noetl.servers.java import Java, find_java, is_java_there, look_for_java
from noetl.spark.driver import SparkDriver
from noetl.spark.object_place import ObjectPlace, place_at, url_of_home
from noetl.spark.session import SparkSettings


def spark_driver(settings: Settings, chosen: SparkSettings | None = None) -> SparkDriver:
    """Starts nothing before its first use."""
    return SparkDriver(
        chosen or spark_settings(settings),
        find_java=lambda: java_for_spark(settings),
        environment=spark_environment(),
    )


def spark_settings(settings: Settings) -> SparkSettings:
    pairs = [pair.strip() for pair in settings.spark_conf.split(";") if pair.strip()]
    conf: dict[str, str] = {}
    for pair in pairs:
        name, is_pair, value = pair.partition("=")
        if not is_pair or not name.startswith("spark."):
            raise SettingInvalid(
                f"NOETL_SPARK_CONF has {name!r}; write spark.name=value, semicolons between them"
            )
        conf[name.strip()] = value.strip()
    return SparkSettings(
        master=settings.spark_master, memory_mb=settings.spark_memory_mb, conf=conf
    )


def results_place(settings: Settings) -> ObjectPlace:
    """Where Spark finds results, and puts them."""
    is_at_home = settings.payload_url == "file:"
    url = url_of_home(settings.home) if is_at_home else settings.payload_url
    return place_at(with_keys(url, cloud_environment()), settings.placement)


def java_for_spark(settings: Settings) -> Java:
    """Ready for use; below the home, a script may be made for it."""
    return find_java(
        spark_environment(),
        folder=Path(settings.home) / "java",
        wanted=settings.java_home or None,
    )


def java_to_be_used(settings: Settings) -> Java:
    """The same one, only looked at."""
    return look_for_java(spark_environment(), wanted=settings.java_home or None)


def what_spark_lacks(settings: Settings) -> NoETLError | None:
    """Why there is no Spark to be had here, as far as can be seen. Every start asks this, so no
    Java is started for it."""
    if find_spec("pyspark") is None:
        return SparkMissing()
    is_far = spark_settings(settings).is_connect  # whose server has the Java
    if is_far or is_java_there(spark_environment(), wanted=settings.java_home or None):
        return None
    return JavaMissing(f"{settings.java_home or 'this machine'} has none")
