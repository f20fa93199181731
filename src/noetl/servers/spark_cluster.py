"""A standalone Spark cluster and a Spark Connect server, from the pip package, on loopback.

Both ask for a secret: who reaches them may run any code as our user.
"""

import contextlib
import functools
import os
import secrets
import shutil
import signal
import sys
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from noetl.kernel.errors import ServerFailed
from noetl.servers.java import Java
from noetl.servers.process import LOOPBACK, ChildProcess, Program, free_ports
from noetl.servers.server import Server
from noetl.servers.spark_conf import write_conf

START_SECONDS_MAX = 120.0  # a JVM on a busy machine

_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class SparkServer(Server):
    """One JVM over one folder. Within one process its ports stay, unless somebody took one."""

    port_taken_text = "Address already in use"
    stop_seconds_max = 15.0
    ready_text: ClassVar[str]  # what its log says once it serves
    memory: ClassVar[str] = "256m"

    def __init__(self, folder: Path, java: Java, settings: Mapping[str, str]) -> None:
        super().__init__()
        self._folder = folder.absolute()
        self._java = java
        self._settings = settings
        self._ports: list[int] = []

    @property
    def url(self) -> str:
        if not self._ports:
            raise ServerFailed(self.name, "has no address before its first start")
        return self._address()

    def _address(self) -> str:
        return f"spark://{LOOPBACK}:{self._ports[0]}"

    @property
    def page(self) -> str:
        """Where it tells people, and programs, what runs."""
        if not self._ports:
            raise ServerFailed(self.name, "has no page before its first start")
        return f"http://{LOOPBACK}:{self._ports[1]}"

    @abstractmethod
    def _command(self, programs: Path) -> list[str]:
        """What to run, out of Spark's folder of programs; the ports are chosen."""

    def _conf(self) -> dict[str, str]:
        return dict(self._settings)

    def _prepare(self) -> None:
        for name in ("conf", "work", "local"):
            (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / "conf" / "log4j2.properties").write_text(_LOGGING)

    def _leave_ports(self) -> None:
        self._ports = []

    def _clean_up(self) -> None:
        """What executors leave: copies of shipped code, shuffled data, output of tasks."""
        for name in ("conf", "work", "local"):
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def _serve(self) -> ChildProcess:
        if not self._ports:
            self._ports = free_ports(2)
        self._prepare()  # again: a start that failed removed it
        write_conf(self._folder / "conf", self._conf())
        process = ChildProcess(self._program(_programs()))
        process.wait_until_ready(lambda: self._is_ready(process), timeout_seconds=START_SECONDS_MAX)
        return process

    def _is_ready(self, process: ChildProcess) -> bool:
        return self.ready_text in process.log_tail()

    def _program(self, programs: Path) -> Program:
        local = str(self._folder / "local")
        return Program(
            name=self.name,
            command=self._command(programs),
            log_path=self._folder / f"{self.name}.log",
            environment={
                "PATH": os.defpath,
                "HOME": str(self._folder),
                "TMPDIR": local,
                "JAVA_HOME": str(self._java.home),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_CONF_DIR": str(self._folder / "conf"),
                "SPARK_LOCAL_DIRS": local,
                "SPARK_LOCAL_IP": LOOPBACK,
                "SPARK_PUBLIC_DNS": LOOPBACK,
                "SPARK_DAEMON_MEMORY": self.memory,
                "SPARK_DAEMON_JAVA_OPTS": f"-Djava.io.tmpdir={local} -Dderby.system.home={local}",
            },
            stop_signal=signal.SIGTERM,
            # What it started would outlive a kill, and is told by an orderly end.
            orphan_signal=signal.SIGTERM,
        )


class SparkMaster(SparkServer):
    name = "spark-master"
    ready_text = "New state: ALIVE"

    def _command(self, programs: Path) -> list[str]:
        port, ui_port = self._ports
        where = ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(ui_port)]
        return [str(programs / "spark-class"), "org.apache.spark.deploy.master.Master", *where]


class SparkWorker(SparkServer):
    name = "spark-worker"
    ready_text = "Successfully registered with master"

    def __init__(
        self, folder: Path, java: Java, settings: Mapping[str, str], *, master: SparkMaster
    ) -> None:
        super().__init__(folder, java, settings)
        self._master = master

    def _command(self, programs: Path) -> list[str]:
        port, ui_port = self._ports
        where = ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(ui_port)]
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / "work")]
        worker = "org.apache.spark.deploy.worker.Worker"
        return [str(programs / "spark-class"), worker, *where, *size, self._master.url]


class SparkConnectServer(SparkServer):
    """A server with its own `local[N,4]`; its address holds the token that it asks for."""

    name = "spark-connect"
    ready_text = "Spark Connect server started at"
    memory = "1g"

    def __init__(
        self, folder: Path, java: Java, settings: Mapping[str, str] | None = None, *, slots: int = 2
    ) -> None:
        super().__init__(folder, java, settings or {})
        self._token = secrets.token_hex(16)
        self._slots = slots

    def _address(self) -> str:
        # By name: clients send a token in the clear to this host alone.
        return f"sc://localhost:{self._ports[0]}/;token={self._token}"

    def _conf(self) -> dict[str, str]:
        port, ui_port = self._ports
        local = self._folder / "local"
        return {
            "spark.master": f"local[{self._slots},4]",
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={local}",
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.port.maxRetries": "0",
            "spark.connect.authenticate.token": self._token,
            "spark.ui.port": str(ui_port),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(self._folder / "work" / "warehouse"),
            **self._settings,
        }

    def _command(self, programs: Path) -> list[str]:
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        return [str(programs / "spark-submit"), "--class", server, "spark-internal"]


class SparkCluster:
    """A master and its workers, started and stopped together. As a context manager it runs."""

    def __init__(self, folder: Path, java: Java, *, workers: int = 2) -> None:
        self._secret = secrets.token_hex(16)
        self.master = SparkMaster(folder / "master", java, self.settings)
        self.workers = [
            SparkWorker(folder / f"worker-{number}", java, self.settings, master=self.master)
            for number in range(1, workers + 1)
        ]
        self._running = contextlib.ExitStack()

    @property
    def url(self) -> str:
        return self.master.url

    @property
    def settings(self) -> dict[str, str]:
        """What a session must be given to be let in."""
        return {"spark.authenticate": "true", "spark.authenticate.secret": self._secret}

    def start(self) -> None:
        with contextlib.ExitStack() as started:
            started.enter_context(self.master)
            with ThreadPoolExecutor(max_workers=max(1, len(self.workers))) as pool:
                for worker in self.workers:
                    started.callback(worker.stop)
                list(pool.map(SparkWorker.start, self.workers))
            self._running = started.pop_all()

    def stop(self) -> None:
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@functools.cache
def _programs() -> Path:
    package = find_spec("pyspark")  # found, not imported
    if package is None or package.origin is None:
        raise ServerFailed("spark", "is not installed; pip install 'noetl[spark]'")
    return Path(package.origin).with_name("bin")
