"""A worker takes as much as it has slots for, goes on without asking, and ends what it began."""

import asyncio

import pytest

from noetl.domain.work import Heartbeat, LeaseAnswer
from noetl.kernel.errors import (
    ClaimLost,
    LogUnavailable,
)
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.worker import WorkerCounts
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import (
    Behaving,
    Desk,
    Gate,
    Scene,
    command,
    only_command,
    reported_commands,
)

GONE = ClaimLost("the work", "has another holder")


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_no_more_runs_at_once_than_there_are_slots(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=2)
    async with scene.running():
        await scene.do(*(command(name) for name in "abcd"))
        assert gate.inside == ["a", "b"]

        await gate.let_through(1)
        assert gate.inside == ["b", "c"]
        await gate.let_through(3)

    assert gate.inside_most == 2
    assert len(scene.desk.reports) == 4
    assert scene.desk.free_slots[:2] == [2, 1]
    assert 0 not in scene.desk.free_slots


async def test_a_claim_asks_for_the_slots_that_are_free(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=3)
    async with scene.running():
        await scene.do(command("a"))

        assert scene.desk.free_slots == [3, 2]
        assert scene.worker.free_slots == 2


async def test_work_that_a_report_brings_runs_without_a_claim(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    async with scene.running():
        scene.desk.chain = [(command("b"),), (command("c"),)]
        await scene.do(command("a"))
        for expected in "abc":
            assert gate.inside == [expected]
            await gate.let_through()

        assert scene.desk.said == ["register", "claim", "report", "report", "report", "claim"]


async def test_further_work_of_a_report_waits_for_a_slot(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    async with scene.running():
        scene.desk.chain = [(command("b"), command("c"))]
        await scene.do(command("a"))
        await gate.let_through()
        assert gate.inside == ["b"]
        await gate.let_through()
        assert gate.inside == ["c"]
        await gate.let_through()

    assert gate.inside_most == 1
    assert len(scene.desk.reports) == 3


async def test_parked_work_frees_its_slot_and_takes_one_again_before_it_goes_on() -> None:
    child_ended, done = asyncio.Event(), asyncio.Event()
    inside: list[str] = []

    async def run(job: Job, _journal: Journal, hold: Hold) -> RowResult:
        name = str(job.command_id)
        if name == "parent":
            await hold.park()
            await child_ended.wait()
            await hold.unpark()
        inside.append(name)
        await done.wait()
        inside.remove(name)
        return RowResult(status="ok")

    scene = Scene(Behaving(run), slots=1)
    async with scene.running():
        await scene.do(command("parent"), command("child"), command("waits"))
        assert inside == ["child"]

        child_ended.set()
        await settle()
        assert inside == ["child"]  # its slot is taken: the parent waits for it

        done.set()
        await settle()
        assert reported_commands(scene.desk) == ["child", "parent", "waits"]
        assert scene.worker.free_slots == 1


async def test_work_that_fails_while_parked_does_not_go_on_without_a_slot(gate: Gate) -> None:
    async def run(job: Job, journal: Journal, hold: Hold) -> RowResult:
        if job.command_id == "parent":
            await hold.park()
            raise LookupError("a fault of ours")
        return await gate(job, journal, hold)

    scene = Scene(Behaving(run), slots=1)
    scene.desk.chain = [(command("next"),)]
    async with scene.running():
        await scene.do(command("parent"))
        await scene.do(command("other"))
        assert len(gate.inside) == 1
        await gate.let_through(2)

    assert gate.inside_most == 1
    assert len(scene.desk.reports) == 3


async def test_draining_lets_work_end_claims_nothing_and_signs_off(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=2)
    async with scene.running() as running:
        await scene.do(command("a"))
        draining = asyncio.create_task(scene.worker.drain())
        await settle()
        await scene.do(command("late"))
        assert not draining.done()

        scene.desk.chain = [(command("next"),)]
        await gate.let_through()
        await draining
        await running

    assert gate.inside == []
    assert reported_commands(scene.desk) == ["a"]
    assert scene.desk.said[-1] == "deregister"


async def test_a_heartbeat_without_an_answer_holds_up_no_drain(gate: Gate) -> None:
    class MuteDesk(Desk):
        async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
            await asyncio.Event().wait()
            return self.answer

    scene = Scene(Behaving(gate))
    scene.desk.__class__ = MuteDesk
    async with scene.running() as running:
        await scene.do(command("a"))
        await scene.clock.advance(11)
        await gate.let_through()
        await asyncio.wait_for(scene.worker.drain(), 5)
        await running


async def test_a_worker_that_never_ran_drains_at_once(gate: Gate) -> None:
    scene = Scene(Behaving(gate))

    await scene.worker.drain()
    await scene.worker.run()

    assert scene.desk.said == ["deregister"]


async def test_cancelling_drops_everything_at_once(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    async with scene.running() as running:
        await scene.do(command("a"), command("b"))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert gate.inside == []
    assert scene.desk.reports == []
    assert "deregister" not in scene.desk.said


async def test_a_desk_that_is_away_is_asked_again(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    away = [LogUnavailable("the log is away") for _ in range(4)]
    scene.desk.trouble = {"register": away[:2], "claim": away[2:]}
    async with scene.running():
        await scene.clock.advance(60)
        await scene.do(command("a"))
        assert gate.inside == ["a"]


async def test_a_report_is_sent_again_until_it_is_recorded(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    scene.desk.trouble = {"report": [LogUnavailable("the log is away") for _ in range(5)]}
    async with scene.running():
        await scene.do(command("a"))
        await gate.let_through()
        assert scene.desk.reports == []

        await scene.clock.advance(25)

    assert only_command(scene.desk).command_id == "a"
    assert scene.desk.said.count("report") == 6


async def test_a_report_is_given_up_when_the_lease_is_over(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    away = [LogUnavailable("the log is away") for _ in range(100)]
    scene.desk.trouble = {"report": away, "heartbeat": list(away)}
    async with scene.running():
        await scene.do(command("a"))
        await gate.let_through()
        await scene.clock.advance(40)
        sent = scene.desk.said.count("report")
        await scene.clock.advance(100)

        assert scene.desk.said.count("report") == sent
        assert scene.worker.counts == WorkerCounts(lost=1)
        assert scene.worker.free_slots == 1


async def test_a_lost_claim_is_dropped_and_counted(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    scene.desk.trouble = {"report": [GONE]}
    async with scene.running():
        await scene.do(command("a"), command("b"))
        await gate.let_through(2)

    assert only_command(scene.desk).command_id == "b"
    assert scene.worker.counts == WorkerCounts(reported=1, lost=1)


async def test_an_answer_of_wait_lets_a_command_go_on(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    scene.desk.answer = LeaseAnswer(next_action="wait")
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(40)
        await gate.let_through()

    assert only_command(scene.desk).error is None
