"""Processes that a tool started, found by an id that one of them wrote to a file."""

import asyncio
import time
from pathlib import Path

import psutil

from tests.servers.processes import END_SECONDS_MAX


async def family_from(pid_file: Path, *, children: int) -> list[psutil.Process]:
    """Who wrote its id, and whom it started, once all of them are there."""
    return await asyncio.to_thread(_wait, pid_file, children)


def alive(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.NoSuchProcess:
        return []


def _wait(pid_file: Path, children: int) -> list[psutil.Process]:
    deadline = time.monotonic() + END_SECONDS_MAX
    while time.monotonic() < deadline:
        text = pid_file.read_text() if pid_file.exists() else ""
        if text.endswith("\n"):
            leader = psutil.Process(int(text))
            below = leader.children(recursive=True)
            if len(below) >= children:
                return [leader, *below]
        time.sleep(0.01)
    raise AssertionError(f"{pid_file.name} names no process with {children} children")
