"""Whoever opens results removes what the dead left; whoever serves does it again and again."""

import asyncio
import hashlib
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from noetl.adapters.cache.shared_memory import FOLDER
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.results import SWEEP_SECONDS, keep_swept, open_results, open_shared_memory
from noetl.bootstrap.settings import Settings
from noetl.testing.compliance.result_cache import key_of, offered

DEAD_PRODUCER = """
import sys
from noetl.bootstrap.results import open_shared_memory
from noetl.bootstrap.settings import Settings
from noetl.testing.compliance.result_cache import key_of, offered
shared = open_shared_memory(Settings(home=sys.argv[1]))
assert shared.offer(key_of(b"left behind"), offered(b"left behind"))
"""


def leave_a_region(settings: Settings) -> None:
    subprocess.run([sys.executable, "-c", DEAD_PRODUCER, settings.home], check=True)


def files_of(settings: Settings) -> list[Path]:
    home = hashlib.sha256(str(Path(settings.home).resolve()).encode()).hexdigest()[:12]
    return list(FOLDER.glob(f"noetl-{home}*"))


class Hurried(SystemClock):
    """Sleeps only so long as it takes others to have their turn."""

    def __init__(self, sleeps: int) -> None:
        self.slept: list[float] = []
        self._sleeps = sleeps

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) > self._sleeps:
            raise asyncio.CancelledError


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path))


async def test_opening_results_removes_what_dead_producers_left(settings: Settings) -> None:
    leave_a_region(settings)
    assert open_shared_memory(settings).stats().entries == 1
    async with open_results(settings, MemoryObjectStore()):
        assert open_shared_memory(settings).stats().entries == 0


async def test_a_process_that_serves_sweeps_every_half_minute(settings: Settings) -> None:
    async with open_results(settings, MemoryObjectStore()) as results:
        leave_a_region(settings)
        clock = Hurried(1)
        with suppress(asyncio.CancelledError):
            await keep_swept(results, clock)
        assert open_shared_memory(settings).stats().entries == 0
    assert clock.slept == [SWEEP_SECONDS, SWEEP_SECONDS]


async def test_a_region_of_the_living_stays(settings: Settings) -> None:
    shared = open_shared_memory(settings)
    assert shared.offer(key_of(b"alive"), offered(b"alive"))
    try:
        async with open_results(settings, MemoryObjectStore()):
            assert shared.stats().entries == 1
    finally:
        for path in files_of(settings):
            path.unlink()


async def test_where_nothing_is_shared_nothing_is_left_in_shared_memory(
    settings: Settings,
) -> None:
    async with open_results(settings, MemoryObjectStore()):
        pass
    assert files_of(settings) == []
