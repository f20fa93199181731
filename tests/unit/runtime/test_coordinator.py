"""One append carries a report and all that follows from it, whoever else reports at once."""

import asyncio

import msgspec
import pytest

from noetl.domain.execution.fold import fold
from noetl.domain.payload import StoredPayload, reference_to
from noetl.domain.work import CommandReport, CommandWork, FrameReport
from noetl.kernel.errors import (
    ClaimLost,
    ExecutionNotFound,
    LogUnavailable,
    VersionConflict,
)
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.pipeline.payloads import as_reference
from noetl.runtime.starting import StartRequest
from noetl.templates.recorded import referred_result
from noetl.testing.desk_words import CHAIN, ROWS, count, ended, said_to, types, worker
from tests.unit.runtime.desk_scene import WORKER, Scene
from tests.unit.runtime.obedient_log import ObedientLog
from tests.unit.runtime.worker_clock import settle

AWAY = LogUnavailable("the log is away")


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


async def test_twenty_reports_at_once_finish_a_loop_once(scene: Scene) -> None:
    execution = await scene.start(ROWS, count=20)
    works = await scene.claim()
    assert len(works) == 20

    await asyncio.gather(*(scene.report(ended(work, WORKER)) for work in works))

    events = await scene.events(execution)
    assert count(events, "frame.committed") == 20
    assert count(events, "loop.done") == 1
    assert count(events, "command.issued") == 1
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_report_handled_twice_issues_the_next_step_once(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    report = ended(await scene.claim_one(), WORKER)

    at_once = await asyncio.gather(*(said_to(scene.report(report)) for _ in range(3)))
    later = await said_to(scene.report(report))
    scene.rebuild()
    after_a_restart = await said_to(scene.report(report))

    assert sorted(at_once) == ["duplicate", "duplicate", "recorded"]
    assert (later, after_a_restart) == ("duplicate", "lost")
    events = await scene.events(execution)
    assert types(events).count("command.completed") == types(events).count("call.done") == 1
    assert count(events, "command.issued") == 2


async def test_the_report_of_a_fenced_claim_is_refused_also_after_a_restart(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    slow = worker("slow")
    first = await scene.claim_one(slow)
    await scene.pass_time(2 * scene.lease_seconds)
    second = await scene.claim_one()
    before = await scene.events(execution)

    for _ in range(2):
        with pytest.raises(ClaimLost):
            await scene.report(ended(first, slow))
        scene.rebuild()

    assert await scene.events(execution) == before
    assert await said_to(scene.report(ended(second, WORKER))) == "recorded"


async def test_cause_and_consequences_are_one_append(scene: Scene, log: ObedientLog) -> None:
    await scene.start(CHAIN)
    work = await scene.claim_one()
    log.appends.clear()

    await scene.report(ended(work, WORKER))

    assert log.appends == [
        [
            "call.done", "command.completed", "step.exit", "step.enter",
            "command.issued", "command.claimed", "command.started",
        ]
    ]  # fmt: skip


async def test_what_could_not_be_appended_has_not_happened(scene: Scene, log: ObedientLog) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    before = await scene.events(execution)
    log.failures = [AWAY]

    with pytest.raises(LogUnavailable):
        await scene.report(ended(work, WORKER))
    assert await scene.events(execution) == before

    assert await said_to(scene.report(ended(work, WORKER))) == "recorded"
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_an_append_whose_answer_got_lost_is_found_in_the_log(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    log.losses = [AWAY]
    with pytest.raises(LogUnavailable):
        await scene.report(ended(work, WORKER))

    assert await said_to(scene.report(ended(work, WORKER))) == "lost"
    await scene.pass_time(2 * scene.lease_seconds)

    assert await scene.run_to_the_end(execution) == "COMPLETED"
    assert count(await scene.events(execution), "command.issued") == 2


async def test_somebody_else_at_the_same_execution_is_noticed(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    other = Scene(scene.log)
    other.playbooks = scene.playbooks
    other.rebuild()
    await other.control.pause(DEFAULT_SCOPE, execution)

    with pytest.raises(VersionConflict):
        await scene.report(ended(work, WORKER))

    assert await said_to(scene.report(ended(work, WORKER))) == "recorded"
    assert await scene.status(execution) == "PAUSED"


async def test_nobody_hears_of_an_end_before_it_is_durable(scene: Scene, log: ObedientLog) -> None:
    execution = await scene.start(CHAIN.replace("    next: {arcs: [{step: second}]}\n", ""))
    work = await scene.claim_one()
    log.hold()
    reporting = asyncio.create_task(scene.report(ended(work, WORKER)))
    await settle()

    assert scene.coordinator.running[execution].is_over
    assert await scene.coordinator.ending(execution, 0) is None
    log.let_go()
    await reporting

    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert ending.status == "COMPLETED"


async def test_a_slot_that_comes_free_during_an_append_gets_work(
    scene: Scene, log: ObedientLog
) -> None:
    log.hold()
    path = await scene.register(CHAIN)
    request = StartRequest(scope=DEFAULT_SCOPE, path=path)
    starting = asyncio.create_task(scene.starter.start(request))
    await settle()
    claiming = asyncio.create_task(scene.desk.claim(WORKER, 1, 5))
    await settle()
    log.let_go()

    execution = await starting
    (work,) = await claiming

    assert isinstance(work, CommandWork)
    assert work.execution_id == execution


async def test_a_turn_that_got_lost_is_taken_again_although_nobody_asks(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(CHAIN)
    log.failures = [AWAY, AWAY]
    assert await scene.claim() == []
    assert execution not in scene.coordinator.running

    await scene.reaper.look()
    await scene.coordinator.drain()
    await scene.reaper.look()
    await scene.coordinator.drain()

    assert [work.step for work in await scene.claim()] == ["first"]


async def test_one_execution_that_cannot_be_read_starves_no_other(
    scene: Scene, log: ObedientLog
) -> None:
    broken = await scene.start(CHAIN)
    await scene.start(CHAIN)
    log.failures = [AWAY]

    works = await scene.claim(1) or await scene.claim(1)

    assert [work.execution_id for work in works] != [broken]
    assert len(works) == 1


async def test_an_execution_that_is_over_leaves_nothing_in_memory(scene: Scene) -> None:
    executions = [await scene.start(ROWS), await scene.start(CHAIN)]
    for execution in executions:
        assert await scene.run_to_the_end(execution) == "COMPLETED"
    coordinator = scene.coordinator

    assert not coordinator.running
    assert not coordinator.seats.starving
    assert not any(
        getattr(coordinator, kept) for kept in ("_inboxes", "_serving", "_loading", "_poked")
    )


async def test_open_work_sees_what_was_true_when_it_was_issued_also_after_a_restart(
    scene: Scene,
) -> None:
    text = CHAIN.replace("    next:", "    set: {ctx.seen: 1}\n    next:")
    execution = await scene.start(text)
    await scene.finish(await scene.claim_one(), "done")
    first = await scene.claim_one()
    scene.rebuild()
    await scene.coordinator.load(execution)
    await scene.pass_time(2 * scene.lease_seconds)
    again = await scene.claim_one()

    assert first.facts.ctx == {"seen": 1}
    assert again.facts == first.facts


async def test_the_state_is_what_the_log_says_at_every_step(scene: Scene) -> None:
    execution = await scene.start(ROWS)
    for work in await scene.claim():
        running = await scene.coordinator.load(execution)
        assert running.state == fold(await scene.events(execution))
        await scene.finish(work)


async def test_a_payload_that_cannot_be_read_fails_the_execution_in_words(scene: Scene) -> None:
    text = CHAIN.replace(
        "{arcs: [{step: second}]}",
        "{arcs: [{step: second, when: \"{{ output.rows[1500].name == 'x' }}\"}]}",
    )
    execution = await scene.start(text)
    work = await scene.claim_one()

    await scene.report(_with_lost_result(ended(work, WORKER)))

    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert ending.status == "FAILED"
    assert ending.error is not None
    assert ending.error.kind == "missing_reference"
    assert "a result cannot be read: nothing is stored under" in ending.error.message


def _with_lost_result(report: CommandReport | FrameReport) -> CommandReport | FrameReport:
    lost = reference_to(DEFAULT_SCOPE, StoredPayload("ab" * 32, 9), "application/json")
    content = {"value": {"rows": [{"name": "x" * 200} for _ in range(2_000)]}}
    result = referred_result(content, as_reference(lost), "ok")
    return msgspec.structs.replace(report, result=result)


async def test_what_is_not_there_is_not_found(scene: Scene) -> None:
    with pytest.raises(ExecutionNotFound):
        await scene.coordinator.ending(ExecutionId("404"), 0)
    assert not scene.coordinator.running
