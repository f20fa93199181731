"""The process that holds the log dies in the middle of a stage on Spark: the next one goes on."""

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetl.adapters.system.ids import SnowflakeIds
from noetl.bootstrap.platform import open_platform
from noetl.kernel.ids import ExecutionId
from tests.servers.processes import family_of, survivors
from tests.stages.coordinator import coordinator, settings_of, word
from tests.stages.half_done import half_done
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import SLOTS, check_leases, check_result, check_whole, log_of
from tests.stages.slot_processes import driver_of, python_workers

pytestmark = pytest.mark.servers

FRAMES_PER_SLOT = 2


async def test_a_coordinator_that_is_killed_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    home, execution = str(tmp_path / "home"), ExecutionId(SnowflakeIds(7).new_id())
    with HeldCounters() as counters:
        order: dict[str, Any] = {"home": home, "execution": execution, "url": counters.url}
        order["frames_per_slot"] = FRAMES_PER_SLOT
        with coordinator(**order, waits_for_slots=True) as first:
            await word(first, "running")
            await word(first, "slots")
            await half_done(counters, lambda: [driver_of(first.pid)], FRAMES_PER_SLOT)
            slots = counters.callers(python_workers(driver_of(first.pid)))
            everybody = family_of(first.pid)
            in_doubt = set().union(*(counters.held_from(each) for each in slots))
            psutil.Process(first.pid).kill()
        # Its slots die with it; one that was answered before would begin rows that nobody records.
        assert await asyncio.to_thread(survivors, everybody) == []
        counters.let_go()
        with coordinator(**order, waits_for_slots=False) as second:
            await word(second, "running")
            over = await word(second, "over")
            assert over["over"] == "COMPLETED", over["error"]
            check_result(over["result"])
            assert second.wait(60) == 0
        async with open_platform(settings_of(home), create=False) as platform:
            await check_whole(platform, execution, counters, in_doubt)
            events = await log_of(platform, execution)
    check_leases(events, frames_lost=SLOTS * FRAMES_PER_SLOT)
