"""Time and memory of a process and everything it started: Spark is three kinds of processes."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_USED = slice(11, 15)  # own time as user and system, and that of children that have ended


def tree_cpu_seconds(pid: int | None = None) -> float:
    """Of the process itself by default. One that ends while we look counts with its parent."""
    return sum(map(_seconds, _tree(os.getpid() if pid is None else pid)))


def tree_peak_mb() -> float:
    """The most that each process had, together: what they had at once is no more than that."""
    return sum(map(_peak_kb, _tree(os.getpid()))) / 1024


def _peak_kb(pid: int) -> int:
    lines = _text(Path(f"/proc/{pid}/status")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _tree(pid: int) -> list[int]:
    found = [pid]
    for at in found:  # grows while it is walked
        for tasks in Path(f"/proc/{at}/task").glob("*/children"):
            found += map(int, _text(tasks).split())
    return found


def _seconds(pid: int) -> float:
    after_name = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, after_name[_USED])) / _TICKS_PER_SECOND


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
