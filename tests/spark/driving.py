"""Drivers for tests, and how tests wait for slots to be where they should be."""

import contextlib
import os
import time
from pathlib import Path

import psutil

from noetl.servers.java import Java, find_java
from noetl.spark.driver import SparkDriver
from noetl.spark.session import SparkSettings
from noetl.spark.slots import SlotJob

FUNCTIONS = Path(__file__).with_name("slot_functions.py")
MEMORY_MB = 512
WAIT_SECONDS_MAX = 120.0

# What a driver gets of our environment.
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def system_java(folder: Path) -> Java:
    return find_java(ENVIRONMENT, folder=folder)


def wheel_java(folder: Path) -> Java:
    return find_java({"PATH": "/nowhere"}, folder=folder)


def driver_on(java: Java, settings: SparkSettings | None = None) -> SparkDriver:
    chosen = settings or SparkSettings(
        master="local[2,4]", memory_mb=MEMORY_MB, py_files=(str(FUNCTIONS),)
    )
    return SparkDriver(chosen, find_java=lambda: java, environment=ENVIRONMENT)


def job(tag: str, function: str, *, slots: int = 2, argument: bytes = b"") -> SlotJob:
    return SlotJob(
        tag=tag,
        stage_id="stage",
        slots=slots,
        function=f"slot_functions:{function}",
        argument=argument,
    )


def wait_for_slots(folder: Path, tag: str, count: int) -> dict[int, int]:
    """The process of each slot, once so many said that they run."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        found = {
            int(path.name.rsplit("-", 1)[1]): int(text)
            for path in folder.glob(f"running-{tag}-*")
            if (text := path.read_text())
        }
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, f"{len(found)} of {count} slots run"
        time.sleep(0.02)


def listening_addresses(pid: int) -> set[str]:
    leader = psutil.Process(pid)
    addresses: set[str] = set()
    for process in (leader, *leader.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            found = process.net_connections("inet")
            addresses |= {item.laddr.ip for item in found if item.status == psutil.CONN_LISTEN}
    return addresses
