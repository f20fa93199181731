"""How often a worker asks, and which answers make its lease longer."""

import asyncio

import pytest

from noetl.domain.work import LeaseAnswer
from noetl.kernel.errors import ClaimLost
from noetl.kernel.instant import Instant
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import LATER, LEASE_SECONDS, Behaving, Gate, Scene, command


async def test_beats_are_never_far_apart_so_that_a_cancel_is_heard_soon() -> None:
    scene = Scene(Behaving(Gate()), beat_seconds_max=2.0)
    async with scene.running():
        await scene.do(command("a", lease_seconds=300))
        await scene.clock.advance(7)

        assert len(scene.desk.beats) == 3


@pytest.mark.parametrize(("lease_until", "holds"), [(None, True), (LATER, False)])
async def test_an_answer_with_the_same_end_makes_no_lease_longer(
    lease_until: Instant | None, holds: bool
) -> None:
    checks: list[bool] = []
    proceed = asyncio.Event()

    async def run(_job: Job, _journal: Journal, hold: Hold) -> RowResult:
        await proceed.wait()
        checks.append(is_held(hold))
        return RowResult(status="ok")

    scene = Scene(Behaving(run))
    scene.desk.answer = LeaseAnswer(next_action="continue", lease_until=lease_until)
    async with scene.running():
        await scene.do(command("a"))  # its lease ends at LATER
        await scene.clock.advance(LEASE_SECONDS)
        proceed.set()
        await settle()

    assert checks == [holds]


def is_held(hold: Hold) -> bool:
    try:
        hold.check()
    except ClaimLost:
        return False
    return True
