"""What `noetl doctor` says about Java and Spark. A JVM is started only when asked for."""

import importlib.metadata

import msgspec

from noetl.bootstrap.settings import Settings
from noetl.bootstrap.spark import java_to_be_used, spark_driver, spark_settings
from noetl.bootstrap.stages import slot_settings
from noetl.cli.doctor_findings import Finding
from noetl.kernel.errors import JavaMissing, NoETLError, SettingInvalid
from noetl.spark.probe import Whereabouts
from noetl.spark.slots import SlotJob


def look_at_spark(settings: Settings) -> list[Finding]:
    """What is installed, by its files."""
    version = spark_version()
    return [_java(settings, is_needed=version is not None), check_spark(settings, version)]


async def try_spark(settings: Settings) -> list[Finding]:
    """Start a session, run one slot, and end it all again."""
    server = settings.public_url or ""
    try:
        async with spark_driver(settings) as driver:
            session = await driver.session()
            job = SlotJob(
                tag="noetl-doctor",
                stage_id="doctor",
                slots=1,
                function="noetl.spark.probe:where",
                argument=server.encode(),
            )
            [summary] = await (await driver.submit(job)).wait()
    except NoETLError as error:
        return [Finding("spark", "bad", f"{error.code}: {error}", _advice(settings))]
    place = msgspec.json.decode(summary.summary, type=Whereabouts)
    said = ", ".join(f"{name} {version}" for name, version in place.versions.items())
    ran = Finding("spark", "ok", f"{session.spark_version} ran a slot on {place.host}: {said}")
    return [ran, *_way_back(settings, place)]


def _way_back(settings: Settings, place: Whereabouts) -> list[Finding]:
    """Slots fetch their frames from the server."""
    if settings.public_url is None:
        if slot_settings(settings).is_on_loopback:
            return []
        advice = "set NOETL_PUBLIC_URL to the server's address there"
        return [Finding("spark", "bad", "executors do not know where this server is", advice)]
    if place.trouble is None:
        return [Finding("spark", "ok", f"{settings.public_url} answers on {place.host}")]
    message = f"{settings.public_url} does not answer on {place.host}: {place.trouble}"
    advice = "start the server (noetl dev), or check NOETL_PUBLIC_URL and the way from there"
    return [Finding("spark", "bad", message, advice)]


def check_spark(settings: Settings, version: str | None) -> Finding:
    try:
        chosen = spark_settings(settings)
    except SettingInvalid as error:
        return Finding("spark", "bad", str(error), "see docs/reference/settings.md")
    if version is not None:
        where = chosen.url.partition("/;")[0]  # what follows may hold a token
        return Finding("spark", "ok", f"{version}, jobs would run on {where}")
    advice = "pip install 'noetl[spark]'"
    if settings.spark_master:
        return Finding("spark", "bad", "a master is set but pyspark is not installed", advice)
    if settings.stage_engine == "spark":
        message = "NOETL_STAGE_ENGINE is spark and pyspark is not installed: loops run here"
        return Finding("spark", "warn", message, advice)
    return Finding("spark", "ok", "not installed", f"when needed: {advice}")


def _advice(settings: Settings) -> str:
    if settings.spark_master:
        return "check NOETL_SPARK_MASTER, or do without: NOETL_STAGE_ENGINE=local"
    return "do without until it works: NOETL_STAGE_ENGINE=local"


def spark_version() -> str | None:
    for name in ("pyspark", "pyspark-client"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _java(settings: Settings, *, is_needed: bool) -> Finding:
    try:
        java = java_to_be_used(settings)
    except JavaMissing as error:
        is_client = settings.spark_master.startswith("sc://")
        return Finding("java", "warn" if is_needed and not is_client else "ok", str(error))
    return Finding("java", "ok", f"{java.version} from {java.source}")
