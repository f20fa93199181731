"""Which process wrote a region, and whether it still lives. Linux tells; elsewhere nobody knows."""

import hashlib
import os
from pathlib import Path

from noetl.adapters.cache.region import Producer

_PROC = Path("/proc")
_START_FIELD = 18  # counted after the state; the name before it may hold spaces and brackets


def this_process() -> Producer:
    pid = os.getpid()
    return Producer(pid, _start_ticks(pid) or 0, _place())


def is_dead(producer: Producer) -> bool:
    """Only if that is sure: a process of another container has numbers of its own."""
    if not producer.start_ticks or producer.place != _place():
        return False
    return _start_ticks(producer.pid) != producer.start_ticks


def boot_id() -> str:
    """Changes whenever the machine starts; empty where the system does not tell."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _place() -> bytes:
    try:
        namespace = os.stat(_PROC / "self/ns/pid").st_ino
    except OSError:
        namespace = 0
    return hashlib.sha256(f"{boot_id()}/{namespace}".encode()).digest()[:16]


def _start_ticks(pid: int) -> int | None:
    try:
        line = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    state, *fields = line.rpartition(b")")[2].split()
    # A zombie has ended; only its parent has not looked yet.
    return None if state in (b"Z", b"X") else int(fields[_START_FIELD])
