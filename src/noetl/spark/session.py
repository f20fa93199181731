"""A Spark session: which master, with which settings, and how code of ours gets there.

The settings go into a file, not into the command line of the JVM: everybody can read that.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from noetl.servers.spark_conf import write_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_MB = 1_024
TASK_TRIES_MAX = 4
LOOPBACK = "127.0.0.1"
# Whose sessions ours are on a Connect server: a later driver must be able to name them.
CONNECT_USER = "noetl"

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Half the processor time to a session and its first job. What a JVM would gain later by compiling
harder, stages never see: their rows run in Python."""

DAEMON = "noetl.spark.worker_daemon"

_LOOPBACK_HOSTS = {LOOPBACK, "localhost", "::1"}
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


_POOL = """\
  <pool name="{name}">
    <schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare>
  </pool>
"""
POOLS = ("stages", "tools")


class SparkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`master` is any that Spark knows: `local[…]`, `spark://…`, `k8s://…`, `yarn` or `sc://…`."""

    master: str = ""  # by default this machine, a slot for each processor
    memory_mb: int = MEMORY_MB  # of the driver, which is all there is on this machine; of executors
    conf: dict[str, str] = {}  # Spark's own settings; they win over ours
    py_files: tuple[str, ...] = ()  # more Python code for slots: files .py, .zip

    def __repr__(self) -> str:  # addresses and settings hold secrets
        where = re.sub(r"token=[^;]*", "token=***", self.master)
        return f"SparkSettings({where!r}, {self.memory_mb} MB, {sorted(self.conf)})"

    @property
    def url(self) -> str:
        return self.master or f"local[{os.cpu_count() or 1},{TASK_TRIES_MAX}]"

    @property
    def is_connect(self) -> bool:
        return self.url.startswith("sc://")

    @property
    def is_local(self) -> bool:
        return self.url.startswith("local")

    @property
    def is_on_loopback(self) -> bool:
        """Nobody beyond this machine has to reach the driver."""
        return self.is_local or urlsplit(self.url).hostname in _LOOPBACK_HOSTS


def write_settings(settings: SparkSettings, folder: Path) -> None:
    """The files that a JVM started with SPARK_CONF_DIR `folder/conf` reads."""
    for name in ("conf", "local"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "conf" / "log4j2.properties").write_text(_LOGGING)
    pools = "".join(_POOL.format(name=name) for name in POOLS)
    _pools(folder).write_text(f"<allocations>\n{pools}</allocations>\n")
    write_conf(folder / "conf", spark_conf(settings, folder))


def _pools(folder: Path) -> Path:
    return folder / "conf" / "pools.xml"


def spark_conf(settings: SparkSettings, folder: Path) -> dict[str, str]:
    memory = f"{settings.memory_mb}m"
    local = str(folder / "local")
    conf = {
        "spark.master": settings.url,
        "spark.app.name": "noetl",
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.task.maxFailures": str(TASK_TRIES_MAX),
        "spark.speculation": "false",  # two holders of one slot would rob each other of frames
        # First come, first served lets a long job starve others; in a pool, too, unless it is said.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": _pools(folder).as_uri(),
        # Together with `gc.freeze` in the workers these make tasks four times cheaper.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.task.killTimeout": "200ms",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",  # no Hive, no database left in a folder
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": local,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={local}",
        "spark.pyspark.python": sys.executable,
        "spark.ui.showConsoleProgress": "false",
        # Elsewhere it would be open to the network, without a password.
        "spark.ui.enabled": str(settings.is_on_loopback).lower(),
        "spark.ui.port": "0",
    }
    if settings.is_local:
        # Elsewhere our code comes with the tasks, which is too late for a daemon.
        conf["spark.python.daemon.module"] = DAEMON
        conf["spark.driver.extraJavaOptions"] += f" {QUICK_JAVA}"
    if settings.is_on_loopback:
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return conf | settings.conf


def open_session(settings: SparkSettings, py_files: Iterable[str]) -> "SparkSession":
    """Blocks for seconds. A JVM must find its settings by SPARK_CONF_DIR, its Java by JAVA_HOME."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, and slow to import

    if settings.is_connect:
        session = SparkSession.builder.remote(connect_url(settings.url)).create()
        for name, value in settings.conf.items():
            session.conf.set(name, value)
        for path in py_files:
            session.addArtifacts(path, pyfile=True)
        return session
    session = SparkSession.builder.getOrCreate()
    for path in py_files:
        session.sparkContext.addPyFile(path)
    return session


def work_session(
    session: "SparkSession", settings: SparkSettings, session_id: str, py_files: Iterable[str]
) -> "SparkSession":
    """A session for one job alone: its views and settings are nobody else's.

    With Connect it has the id that follows from its work, so that whoever does this work again
    finds it.
    """
    if not settings.is_connect:
        return session.newSession()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, and slow to import

    own = SparkSession.builder.remote(connect_url(settings.url, session_id)).create()
    for name, value in settings.conf.items():
        own.conf.set(name, value)
    for path in py_files:
        own.addArtifacts(path, pyfile=True)
    return own


def connect_url(url: str, session_id: str | None = None) -> str:
    """The address with a user that a later driver can name again, and with a session if given."""
    host, _, rest = url.partition("/;")
    pairs = [pair for pair in rest.split(";") if pair]
    if not any(pair.startswith("user_id=") for pair in pairs):
        pairs.append(f"user_id={CONNECT_USER}")
    if session_id is not None:
        pairs = [pair for pair in pairs if not pair.startswith("session_id=")]
        pairs.append(f"session_id={session_id}")
    return f"{host.rstrip('/')}/;{';'.join(pairs)}"
