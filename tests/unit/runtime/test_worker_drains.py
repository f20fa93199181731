"""A worker that leaves in good order: what runs may end, and what is late is handed back."""

import asyncio

from noetl.domain.events.values import Result
from noetl.domain.work import Call, LeaseAnswer
from noetl.kernel.errors import ClaimLost
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from tests.unit.runtime.frame_scene import index_of
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import (
    LOOP,
    Behaving,
    Gate,
    Scene,
    command,
    frame,
    only_frame,
    reported_commands,
)

FIRED = Call(task="pay", result=Result(status="ok"), effect="fired")


async def drained(scene: Scene, *, after_seconds: float = 0.0) -> None:
    draining = asyncio.create_task(scene.worker.drain(10.0))
    await settle()
    await scene.clock.advance(after_seconds)
    await asyncio.wait_for(draining, 5)


async def test_what_has_not_ended_in_time_is_dropped_before_the_worker_signs_off() -> None:
    gate = Gate()
    scene = Scene(Behaving(gate))
    async with scene.running() as running:
        await scene.do(command("endless"))
        await drained(scene, after_seconds=10)
        await running

    assert gate.inside == []
    assert scene.desk.reports == []
    assert scene.desk.said[-1] == "deregister"


async def test_whoever_is_in_a_hurry_waits_for_nothing() -> None:
    scene = Scene(Behaving(Gate()))
    async with scene.running():
        await scene.do(command("endless"))
        draining = asyncio.create_task(scene.worker.drain(10.0))
        await settle()
        scene.worker.drop()
        await asyncio.wait_for(draining, 5)

    assert scene.desk.reports == []


async def test_a_frame_ends_with_the_rows_that_run() -> None:
    gate = Gate()
    scene = Scene(Behaving(gate), steps=LOOP)
    async with scene.running():
        await scene.do(frame(list(range(9)), row_concurrency=2))
        await gate.let_through(3)
        draining = asyncio.create_task(scene.worker.drain(10.0))
        await settle()
        await gate.let_through(9)
        await asyncio.wait_for(draining, 5)

    assert [each.index for each in only_frame(scene.desk).outcomes] == [0, 1, 2, 3, 4]


async def test_work_that_waits_for_others_is_not_waited_for() -> None:
    async def waits(_job: Job, _journal: Journal, hold: Hold) -> RowResult:
        await hold.park()
        await asyncio.Event().wait()
        return RowResult(status="ok")

    scene = Scene(Behaving(waits))
    async with scene.running():
        await scene.do(command("parent"))
        await drained(scene)

    assert scene.desk.reports == []


async def test_work_that_begins_to_wait_for_others_is_not_waited_for_either() -> None:
    gate = Gate()

    async def waits(job: Job, journal: Journal, hold: Hold) -> RowResult:
        await gate(job, journal, hold)
        await hold.park()
        await asyncio.Event().wait()
        return RowResult(status="ok")

    scene = Scene(Behaving(waits))
    async with scene.running():
        await scene.do(command("parent"))
        draining = asyncio.create_task(scene.worker.drain(10.0))
        await gate.let_through()
        await asyncio.wait_for(draining, 5)

    assert scene.desk.reports == []


async def test_work_that_waits_for_a_slot_does_not_begin() -> None:
    gate = Gate()
    scene = Scene(Behaving(gate), slots=1)
    async with scene.running():
        scene.desk.chain = [(command("b"), command("c"))]
        await scene.do(command("a"))
        await gate.let_through()
        assert gate.inside == ["b"]
        draining = asyncio.create_task(scene.worker.drain(10.0))
        await gate.let_through(2)
        await asyncio.wait_for(draining, 5)

    assert reported_commands(scene.desk) == ["a", "b"]


async def test_cancelled_work_is_not_waited_for() -> None:
    scene = Scene(Behaving(Gate()))
    async with scene.running():
        await scene.do(command("cancelled"))
        scene.desk.trouble["heartbeat"] = [ClaimLost("cancelled", "is over")]
        await drained(scene)

    assert scene.worker.counts.lost == 1


async def test_a_frame_that_is_dropped_leaves_what_its_rows_have_done() -> None:
    async def fires(job: Job, journal: Journal, _hold: Hold) -> RowResult:
        if index_of(job) == 2:
            await asyncio.Event().wait()
        return RowResult(status="ok", calls=(FIRED,))

    scene = Scene(Behaving(fires), steps=LOOP)
    work = frame(list(range(4)))
    async with scene.running():
        await scene.do(work)
        draining = asyncio.create_task(scene.worker.drain(10.0))
        await settle()
        scene.worker.drop()  # before the journal was flushed by itself
        await asyncio.wait_for(draining, 5)

    entries = await scene.journal.read(work.execution_id, work.frame_id)
    assert [entry.row for entry in entries if entry.call is not None] == [0, 1]


async def test_a_desk_that_says_continue_does_not_make_a_leaving_worker_go_on() -> None:
    gate = Gate()
    scene = Scene(Behaving(gate), steps=LOOP)
    scene.desk.answer = LeaseAnswer(next_action="continue")
    async with scene.running():
        await scene.do(frame(list(range(9))))
        draining = asyncio.create_task(scene.worker.drain(60.0))
        await scene.clock.advance(15)  # heartbeats are answered meanwhile
        await gate.let_through(9)
        await asyncio.wait_for(draining, 5)

    assert only_frame(scene.desk).row_count == 1
