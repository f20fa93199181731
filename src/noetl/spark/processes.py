"""End a driver with all it started: the JVM, and the Python workers in groups of their own."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator

ROUNDS_MAX = 10  # those who are ended may start others meanwhile
GONE_MILLISECONDS_MAX = 10_000


def end_session(leader: int, *, spared: int | None = None) -> None:
    """Kill every process of the session that `leader` opened, and wait until they are gone.

    The caller must hold the leader's id: not have reaped it, or be it.
    """
    if not hasattr(os, "pidfd_open"):  # not Linux: the group has the JVM, whose end ends the rest
        if spared is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader, signal.SIGKILL)
        return
    for _ in range(ROUNDS_MAX):
        members = [pid for pid in _members(leader) if pid != spared]
        if not members:
            return
        with contextlib.ExitStack() as opened:
            for descriptor in [found for pid in members for found in _killed(pid, leader)]:
                opened.callback(os.close, descriptor)
                gone = select.poll()
                gone.register(descriptor, select.POLLIN)
                gone.poll(GONE_MILLISECONDS_MAX)


def _killed(pid: int, session: int) -> Iterator[int]:
    """By a descriptor, not by number: a number may be another process by now."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    if _session_of(pid) == session:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        yield descriptor
    else:
        os.close(descriptor)


def _members(session: int) -> list[int]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if _session_of(pid) == session]


def _session_of(pid: int) -> int | None:
    """None: gone, or ended and not yet reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The program's name, in brackets, may hold anything, brackets too.
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[3])
