"""A server as a child process: start it, wait until it is ready, end it with all it started."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psutil

from noetl.kernel.errors import ServerFailed

LOOPBACK = "127.0.0.1"
# Below the range from which Linux takes ports for outgoing connections, which would race with us.
# Both a port and its companion must fit.
PORTS = range(10_000, 22_000)
PORT_TRIES_MAX = 1_000

POLL_SECONDS = 0.01
KILL_SECONDS_MAX = 10.0
LOG_TAIL_LINES_MAX = 20

_LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run. The environment is given whole: nothing of ours leaks into a server."""

    name: str
    command: Sequence[str]
    log_path: Path
    environment: Mapping[str, str]
    stop_signal: signal.Signals  # asks for an orderly end
    orphan_signal: signal.Signals  # what the kernel sends when our process ends first
    user_id: int | None = None


class ChildProcess:
    """A running program, in a process group of its own, with its output in a log file.

    Its process id stays ours until `stop` or `kill` returns, because only they reap it: no signal
    can reach a stranger who was given the same id.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        log_path = program.log_path
        self._log_start = log_path.stat().st_size if log_path.exists() else 0
        forked: Future[subprocess.Popen[bytes]] = Future()
        # The kernel takes the end of the thread that forked for the end of the parent, so the
        # child gets a thread that lives exactly as long as the child does.
        self._watcher = Thread(
            target=_fork_and_watch, args=(program, forked), name=program.name, daemon=True
        )
        self._watcher.start()
        self._child = forked.result()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._watcher.is_alive()

    def wait_until_ready(self, ready: Callable[[], bool], *, timeout_seconds: float) -> None:
        """Return once `ready()` holds; otherwise nothing is left of the child."""
        deadline = time.monotonic() + timeout_seconds
        with contextlib.ExitStack() as undo:
            undo.callback(self.kill)
            while not ready():
                self._watcher.join(POLL_SECONDS)
                if not self.is_running:
                    raise self._failure("ended before it was ready")
                if time.monotonic() > deadline:
                    raise self._failure(f"was not ready after {timeout_seconds:g} seconds")
            undo.pop_all()

    def wait_until_done(self, *, timeout_seconds: float) -> None:
        """For programs that end by themselves: return once it ended well."""
        self._watcher.join(timeout_seconds)
        late = self.is_running
        self.kill()
        if late:
            raise self._failure(f"was not done after {timeout_seconds:g} seconds")
        if self._child.returncode != 0:
            raise self._failure(f"ended with code {self._child.returncode}")

    def stop(self, *, timeout_seconds: float) -> None:
        """Ask for an orderly end; after the timeout, force it."""
        if self.is_running:
            os.kill(self.pid, self._program.stop_signal)
            self._watcher.join(timeout_seconds)
        self.kill()

    def kill(self) -> None:
        """End the child and everything it started, now."""
        if self._child.returncode is not None:
            return
        family = _freeze(self.pid)
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        os.killpg(self.pid, signal.SIGKILL)
        self._watcher.join(KILL_SECONDS_MAX)  # first, or it would wait for a child that is reaped
        self._child.wait(KILL_SECONDS_MAX)
        _wait_until_gone(self._program.name, family)

    def log_tail(self) -> str:
        """The last lines of this run's output."""
        with self._program.log_path.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES_MAX:])

    def _failure(self, reason: str) -> ServerFailed:
        where = f"; the last lines of {self._program.log_path}:"
        return ServerFailed(self._program.name, reason + where, self.log_tail())


def free_ports(count: int, *, companion_offset: int = 0) -> list[int]:
    """Loopback ports that nobody listens on now; with an offset, neither on port + offset.

    Somebody may still take one before the server does, so a start must be ready to try again.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as held:  # until all are found, so that they differ
        for _ in range(PORT_TRIES_MAX):
            if len(ports) == count:
                return ports
            port = random.choice(PORTS)
            try:
                for wanted in {port, port + companion_offset}:
                    held.enter_context(_bound(wanted))
            except OSError:
                continue
            ports.append(port)
    raise ServerFailed("port search", f"found no {count} free ports from {PORTS[0]} on")


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    # As servers do: what is left of closed connections does not make a port taken.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
    except OSError:
        bound.close()
        raise
    return bound


def _fork_and_watch(program: Program, forked: Future[subprocess.Popen[bytes]]) -> None:
    user_id = "" if program.user_id is None else str(program.user_id)
    launch = [sys.executable, "-I", "-S", str(_LAUNCHER)]
    request = [str(os.getpid()), str(int(program.orphan_signal)), user_id]
    try:
        with program.log_path.open("ab") as log:
            child = subprocess.Popen(
                [*launch, *request, *program.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(program.environment),
                process_group=0,
            )
    except OSError as error:
        forked.set_exception(error)
        return
    forked.set_result(child)
    # Without reaping: the id must not be given to another process before `kill` is through.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def _freeze(pid: int) -> list[psutil.Process]:
    """Stop a process, so that it starts no more, and list what it started.

    The list is needed besides the process group: Postgres gives each of its children its own.
    """
    try:
        os.kill(pid, signal.SIGSTOP)
        return psutil.Process(pid).children(recursive=True)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return []


def _wait_until_gone(name: str, family: Iterable[psutil.Process]) -> None:
    """Wait for processes that are not our children; who adopted them may never reap them."""
    deadline = time.monotonic() + KILL_SECONDS_MAX
    for member in family:
        while _is_alive(member):
            if time.monotonic() > deadline:
                raise ServerFailed(
                    name, f"left process {member.pid} behind, which cannot be killed"
                )
            time.sleep(POLL_SECONDS)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
