"""A program of a task's author: started in a session of its own, ended with all it started."""

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any

from noetl.tools.failures import failed
from noetl.tools.output_tail import OutputTail


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run. The environment is given whole: nothing of ours leaks into it."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    passed: tuple[int, ...] = ()  # file descriptors that it inherits
    output_bytes_max: int


class ChildProcess:
    """A running program. Made inside a running loop; raises OSError or ValueError at once.

    It is reaped by this loop and only after its group was killed, so no signal can reach a
    stranger who was given the same id. When our process dies, the kernel kills the group.
    """

    def __init__(self, program: Program) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = loop.create_future()
        with contextlib.ExitStack() as undo:
            self.stdout = OutputTail(program.output_bytes_max)
            undo.callback(self.stdout.close)
            self.stderr = OutputTail(program.output_bytes_max)
            undo.callback(self.stderr.close)
            listening, self._lifeline = os.pipe()
            with os.fdopen(listening, "rb", 0):
                undo.callback(os.close, self._lifeline)
                self._child = self._start(program, listening)
                _kill_group_when_closed(listening, self._child.pid)
            undo.pop_all()
        self.stdout.watch(loop)
        self.stderr.watch(loop)
        Thread(target=_watch, args=(self.pid, loop, self._ended), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return not self.exited.done()

    async def end(self) -> int:
        """Kill it with all it started; returns its exit code once it is gone."""
        self.kill()
        return await asyncio.shield(self.exited)

    def kill(self) -> None:
        if not self.is_running:
            return
        os.kill(self.pid, signal.SIGSTOP)  # so that it starts no more while we look
        for member in _family(self.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
        self._kill_group()

    def _start(self, program: Program, listening: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=self.stdout.write_end,
            stderr=self.stderr.write_end,
            env=dict(program.environment),
            cwd=program.folder,
            pass_fds=(*program.passed, listening),
            start_new_session=True,
        )

    def _ended(self) -> None:
        self._kill_group()
        code = self._child.wait()
        os.close(self._lifeline)
        for tail in (self.stdout, self.stderr):
            tail.drain()
            tail.close()
        self.exited.set_result(code)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def exit_text(code: int) -> str:
    """An exit code as people say it."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def child_environment(given: Mapping[str, str], own: Any) -> dict[str, str]:
    """What the operator allows and what the task adds; a null takes a name away."""
    if own and not isinstance(own, Mapping):
        raise failed("client_error", "env must be a map of names and texts")
    whole = {**given, **(own or {})}
    return {
        str(name): _environment_text(value) for name, value in whole.items() if value is not None
    }


def _environment_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _watch(pid: int, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
    # Without reaping: the id must stay ours until the group is killed.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(ended)


def _kill_group_when_closed(listening: int, group: int) -> None:
    """Ask the kernel to kill the group when the last writer of the pipe, our process, is gone.

    The end of the parent's thread would be the usual signal, but it ends only the child itself,
    and for a thread that ends early it comes too early.
    """
    if hasattr(fcntl, "F_SETSIG"):  # Linux
        fcntl.fcntl(listening, fcntl.F_SETOWN, -group)
        fcntl.fcntl(listening, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(listening, fcntl.F_GETFL)
        fcntl.fcntl(listening, fcntl.F_SETFL, flags | os.O_ASYNC)


def _family(leader: int) -> set[int]:
    """Whom the leader started, also outside its group: in its session, or below it."""
    known = {leader}
    rows = list(_processes())
    for _ in range(len(rows)):
        found = {
            pid for pid, parent, session in rows if parent in known or session == leader
        } - known
        if not found:
            break
        known |= found
    return known - {leader}


def _processes() -> Iterator[tuple[int, int, int]]:
    """(process, parent, session) of every process that we may see; none without /proc."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                    # The program's name, in brackets, may hold anything, brackets too.
                    fields = stat.read().rpartition(b")")[2].split()
                    yield int(name), int(fields[1]), int(fields[3])
