"""Leases are kept alive by one heart; a worker that has lost one starts and reports nothing."""

import asyncio

import pytest

from noetl.domain.work import Heartbeat, LeaseAnswer
from noetl.kernel.errors import ClaimLost, InvariantBroken, LogUnavailable
from noetl.kernel.ids import CommandId, WorkerId
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.worker import WorkerCounts
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import (
    EXECUTION,
    LEASE_SECONDS,
    LOOP,
    Behaving,
    Desk,
    Gate,
    Scene,
    command,
    frame,
    only_command,
)

GONE = ClaimLost("the work", "has another holder")


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_every_lease_gets_three_beats_in_its_time(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    async with scene.running():
        await scene.do(command("a", claim=7))
        await scene.clock.advance(2 * LEASE_SECONDS)

        beat = Heartbeat(
            execution_id=EXECUTION, worker_id=WorkerId("w1"), claim=7, command_id=CommandId("a")
        )
        assert scene.desk.beats == [beat] * 6


async def test_leases_of_other_lengths_beat_in_their_own_time(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    async with scene.running():
        await scene.do(command("slow", lease_seconds=300), command("quick", lease_seconds=3))
        await scene.clock.advance(6)

        assert [beat.command_id for beat in scene.desk.beats] == ["quick"] * 6


async def test_a_frame_beats_with_its_attempt(gate: Gate) -> None:
    scene = Scene(Behaving(gate), steps=LOOP)
    async with scene.running():
        await scene.do(frame(["x"], attempt=2))
        await scene.clock.advance(10)

        (beat,) = scene.desk.beats
        assert (beat.claim, beat.stage_id, beat.frame_id, beat.command_id) == (2, "s1", "f1", None)


async def test_work_that_has_ended_beats_no_more(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    async with scene.running():
        await scene.do(command("a"))
        await gate.let_through()
        await scene.clock.advance(100)

        assert scene.desk.beats == []


async def test_parked_work_keeps_its_lease() -> None:
    child_ended = asyncio.Event()

    async def run(_job: Job, _journal: Journal, hold: Hold) -> RowResult:
        await hold.park()
        await child_ended.wait()
        await hold.unpark()
        hold.check()
        return RowResult(status="ok")

    scene = Scene(Behaving(run))
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(10 * LEASE_SECONDS)
        child_ended.set()
        await settle()

    assert only_command(scene.desk).error is None


async def test_a_claim_that_is_lost_cancels_the_work(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    scene.desk.trouble = {"heartbeat": [GONE]}
    async with scene.running():
        await scene.do(command("a"), command("b"))
        await scene.clock.advance(10)
        assert gate.inside == ["b"]
        await gate.let_through()

    assert only_command(scene.desk).command_id == "b"
    assert scene.worker.counts == WorkerCounts(reported=1, lost=1)


async def test_work_that_is_stopped_is_cancelled_and_not_reported(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    scene.desk.answer = LeaseAnswer(next_action="stop")
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(10)

        assert gate.inside == []
        assert scene.worker.free_slots == 1
    assert scene.desk.reports == []
    assert scene.worker.counts == WorkerCounts(stopped=1)


async def test_an_answer_that_comes_too_late_stops_nobody_else(gate: Gate) -> None:
    """The beat is on its way while its work ends and the next one begins in the same slot."""
    answered = asyncio.Event()

    class SlowDesk(Desk):
        async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
            await answered.wait()
            raise GONE

    scene = Scene(Behaving(gate), slots=1)
    scene.desk.__class__ = SlowDesk
    scene.desk.chain = [(command("b"),)]
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(10)
        await gate.let_through()
        answered.set()
        await settle()
        assert gate.inside == ["b"]


async def test_a_beat_that_fails_is_repeated_soon(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    scene.desk.trouble = {"heartbeat": [LogUnavailable("the log is away") for _ in range(3)]}
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(25)
        assert len(scene.desk.beats) == 1
        await gate.let_through()

    assert only_command(scene.desk).error is None


async def test_a_broken_invariant_in_a_beat_stops_the_worker(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    scene.desk.trouble = {"heartbeat": [InvariantBroken("two holders")]}
    async with scene.running() as running:
        await scene.do(command("a"))
        await scene.clock.advance(10)
        with pytest.raises(InvariantBroken):
            await running


@pytest.mark.parametrize(("seconds", "holds"), [(26.9, True), (27.1, False)])
async def test_a_worker_trusts_its_lease_up_to_a_margin_by_its_own_clock(
    seconds: float, holds: bool
) -> None:
    checks: list[bool] = []
    proceed = asyncio.Event()

    async def run(_job: Job, _journal: Journal, hold: Hold) -> RowResult:
        await proceed.wait()
        checks.append(is_held(hold))
        hold.check()
        return RowResult(status="ok")

    scene = Scene(Behaving(run))
    scene.desk.trouble = {"heartbeat": [LogUnavailable("the log is away") for _ in range(99)]}
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(seconds)
        proceed.set()
        await settle()

    assert checks == [holds]
    assert len(scene.desk.reports) == (1 if holds else 0)


def is_held(hold: Hold) -> bool:
    try:
        hold.check()
    except ClaimLost:
        return False
    return True


async def test_a_lease_counts_from_before_the_request_that_confirmed_it() -> None:
    """The beat took eight seconds; nobody knows when within them the desk renewed the lease."""
    seen: list[bool] = []
    look, answered = asyncio.Event(), asyncio.Event()

    class SlowDesk(Desk):
        async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
            if self.beats:
                raise LogUnavailable("the log is away")
            self.beats.append(beat)
            await answered.wait()
            return self.answer

    async def run(_job: Job, _journal: Journal, hold: Hold) -> RowResult:
        while len(seen) < 2:
            await look.wait()
            look.clear()
            seen.append(is_held(hold))
        return RowResult(status="ok")

    scene = Scene(Behaving(run))
    scene.desk.__class__ = SlowDesk
    async with scene.running():
        await scene.do(command("a"))  # at 0: held until 27
        await scene.clock.advance(18)  # the beat is sent at 10, and answered at 18
        answered.set()
        await scene.clock.advance(18)  # at 36: held until 10 + 27
        look.set()
        await scene.clock.advance(2)  # at 38
        look.set()
        await settle()

    assert seen == [True, False]


@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_frame_without_a_lease_starts_no_row_and_reports_nothing(at_once: int) -> None:
    scenes: list[Scene] = []

    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        await scenes[0].clock.sleep(4)
        return RowResult(status="ok")

    pipelines = Behaving(run)
    scene = Scene(pipelines, steps=LOOP)
    scenes.append(scene)
    scene.desk.trouble = {"heartbeat": [LogUnavailable("the log is away") for _ in range(99)]}
    async with scene.running():
        await scene.do(frame(list(range(100)), row_concurrency=at_once))
        await scene.clock.advance(100)

    assert len(pipelines.jobs) == 7 * at_once  # at 0, 4, ... 24 seconds
    assert scene.desk.reports == []
    assert scene.worker.counts == WorkerCounts(lost=1)
