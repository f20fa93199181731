"""An engine that is killed at any moment goes on where it was: nothing lost, nothing done twice."""

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.ids import ExecutionId
from tests.crash.counters import Counters
from tests.crash.mixed import expected
from tests.crash.mixed_checks import check_mixed, check_whole_log
from tests.crash.victims import Victims, Word

KILLS = 100
KILLS_PER_EXECUTION_MAX = 9
APPENDS_MAX = 14
LIFE_SECONDS_MAX = 0.5
GONE_SECONDS_MAX = 60.0
POLL_SECONDS = 0.02

pytestmark = pytest.mark.crash


class Round:
    """One execution, killed several times and then left to its end."""

    def __init__(self, victims: Victims, order: dict[str, Any]) -> None:
        self.victims = victims
        self.order = order
        self.orphans: set[psutil.Process] = set()

    def kill_after_appends(self, appends: int) -> Word | None:
        """The end of the execution, or None when it was killed before."""
        self.victims.start("run", **self.order, appends=appends)
        return self._until("dying", "closed")

    def kill_after_seconds(self, seconds: float) -> Word | None:
        self.victims.start("run", **self.order, appends=None)
        time.sleep(seconds)
        return _end_in(self._killed())

    def finish(self) -> Word:
        self.victims.start("run", **self.order, appends=None)
        end = self._until("closed")
        assert end is not None
        return end

    def _until(self, *signs: str) -> Word | None:
        words = [self.victims.hear(1)[0]]
        while not any(sign in words[-1] for sign in signs):
            words += self.victims.hear(1)
        return _end_in(words + self._killed())

    def _killed(self) -> list[Word]:
        self.orphans |= self.victims.offspring()
        return self.victims.kill()


def _end_in(words: list[Word]) -> Word | None:
    return next((word for word in words if "over" in word), None)


def test_an_execution_ends_as_if_nothing_had_happened(
    tmp_path: Path, victims: Victims, chance: Random, counters: Counters
) -> None:
    home, trace = tmp_path / "home", tmp_path / "trace"
    ids = SnowflakeIds(7)
    kills, executions, orphans = 0, list[ExecutionId](), set[psutil.Process]()
    while kills < KILLS:
        execution = ExecutionId(ids.new_id())
        executions.append(execution)
        order = {"home": str(home), "url": counters.url, "trace": str(trace)}
        one = Round(victims, {**order, "execution": execution})
        end: Word | None = None
        for _ in range(chance.randint(1, KILLS_PER_EXECUTION_MAX)):
            if chance.random() < 0.5:
                end = one.kill_after_appends(chance.randint(1, APPENDS_MAX))
            else:
                end = one.kill_after_seconds(chance.uniform(0, LIFE_SECONDS_MAX))
            if end is not None:
                break
            kills += 1
        end = end or one.finish()
        orphans |= one.orphans
        assert (end["over"], end["result"]) == ("COMPLETED", expected()), end
        asyncio.run(check_mixed(home, trace, execution, counters))
    print(f"{kills} kills in {len(executions)} executions")
    asyncio.run(check_whole_log(home))
    check_that_all_are_gone(orphans)


def check_that_all_are_gone(orphans: set[psutil.Process]) -> None:
    deadline = time.monotonic() + GONE_SECONDS_MAX
    while alive := [process for process in orphans if process.is_running()]:
        assert time.monotonic() < deadline, f"processes outlive their engine: {alive}"
        time.sleep(POLL_SECONDS)
