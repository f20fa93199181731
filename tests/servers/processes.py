"""Watch processes by identity: an id that was given to another process does not count."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

END_SECONDS_MAX = 60.0


def family_of(pid: int) -> list[psutil.Process]:
    leader = psutil.Process(pid)
    return [leader, *leader.children(recursive=True)]


def survivors(family: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a fair time."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while any(map(is_alive, family)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [process for process in family if is_alive(process)]


def is_alive(process: psutil.Process) -> bool:
    """Not so when it ended and only its entry is left, which nobody may ever remove."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def parent_of(code: str, argument: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Run Python code that prints process ids in one line and then waits on its standard input."""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(argument)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        yield parent, [int(pid) for pid in parent.stdout.readline().split()]
