"""Shared memory of a process that was killed: the next one to start takes it back."""

from pathlib import Path

import pytest

from noetl.bootstrap.results import open_shared_memory
from noetl.bootstrap.settings import Settings
from tests.results.dev_server import TABLE, dev_server

pytestmark = pytest.mark.crash


async def test_regions_of_a_killed_producer_are_gone_after_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shared = open_shared_memory(Settings(home=str(home)))
    async with dev_server(home) as dev:
        await dev.run(TABLE)
        stats = shared.stats()
        assert stats.entries == 1
        assert stats.bytes_in_use > 200_000
        dev.process.kill()
        await dev.process.wait()
    assert shared.stats().entries == 1  # nobody was left to remove it

    async with dev_server(home):
        assert shared.stats().entries == 0


async def test_with_a_budget_of_nothing_everything_works_and_nothing_is_shared(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with dev_server(home, NOETL_RESULT_SHARED_MEMORY_MB="0") as dev:
        execution = await dev.run(TABLE)
        uri = f"noetl://default/default/results/{execution}/start/0/0/1@1"
        assert len(await dev.get("/api/result/resolve", ref=uri)) == 2_000
    shared = open_shared_memory(Settings(home=str(home)))
    assert shared.stats().entries == 0
