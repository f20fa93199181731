"""Open work goes to free slots, as often as its policy allows and not more often."""

import msgspec
import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import Call, CommandWork, FrameReport, FrameWork, Work
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.reports import FRAME_ATTEMPTS_MAX
from noetl.templates.recorded import inline_result
from noetl.testing.desk_words import CHAIN, ROWS, count, ended, failed, types, worker
from tests.unit.runtime.desk_scene import WORKER, Scene

BEADS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: beads, path: handout/beads}
workflow:
  - step: each
    loop:
      in: "{{ range(4) | list }}"
      iterator: bead
      spec: {mode: sequential, frame: {max_rows: 2}}
    tool: {kind: noop}
"""
LOST = Failure(kind="connection", message="the target is away", retryable=True)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def frame(work: Work) -> FrameWork:
    assert isinstance(work, FrameWork)
    return work


async def test_no_more_goes_out_than_there_are_slots(scene: Scene) -> None:
    await scene.start(ROWS, count=10)

    assert len(await scene.claim(3)) == 3
    assert len(await scene.claim(4, worker("other"))) == 4


async def test_executions_that_wait_for_slots_get_them_in_turn(scene: Scene) -> None:
    executions = [await scene.start(CHAIN) for _ in range(3)]

    works = [(await scene.claim(1, worker(f"w{number}")))[0] for number in range(3)]

    assert [work.execution_id for work in works] == executions


async def test_rows_of_a_sequential_loop_see_what_the_rows_before_them_wrote(scene: Scene) -> None:

    await scene.start(BEADS)
    first = frame(await scene.claim_one())
    report = msgspec.structs.replace(ended(first, WORKER), writes={"sum": 1})
    await scene.report(report)
    second = frame(await scene.claim_one())

    assert (first.first_index, first.row_count) == (0, 2)
    assert (second.first_index, second.row_count) == (2, 2)
    assert (first.facts.ctx, second.facts.ctx) == ({}, {"sum": 1})


async def test_rows_that_a_frame_left_are_another_frame(scene: Scene) -> None:

    execution = await scene.start(BEADS)
    first = frame(await scene.claim_one())
    whole = ended(first, WORKER)
    assert isinstance(whole, FrameReport)
    await scene.report(msgspec.structs.replace(whole, row_count=1, outcomes=whole.outcomes[:1]))
    second = frame(await scene.claim_one())

    assert (second.first_index, second.row_count) == (1, 1)
    await scene.finish(second)
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_frame_that_could_not_be_processed_is_handed_out_again_then_fails_the_loop(
    scene: Scene,
) -> None:
    execution = await scene.start(ROWS, count=1)
    attempts = []
    while works := await scene.claim():
        (work,) = works
        attempts.append(frame(work).attempt)
        await scene.report(failed(work, WORKER, LOST))

    assert attempts == [1, 2, 3]
    assert await scene.status(execution) == "FAILED"
    (done,) = await scene.of(execution, "loop.done")
    assert (done.status, done.error.kind) == ("failed", "connection")


async def test_a_frame_whose_holders_went_quiet_too_often_ends_the_loop(scene: Scene) -> None:
    """Nobody asks for work any more: the end of the loop must follow by itself."""
    execution = await scene.start(ROWS, count=1)
    for number in range(FRAME_ATTEMPTS_MAX):
        (work,) = await scene.claim(1, worker(f"quiet-{number}"))
        assert frame(work).attempt == number + 1
        await scene.pass_time(2 * scene.lease_seconds)

    (lost,) = await scene.of(execution, "frame.failed")
    assert lost.error.kind == "lease_lost"
    assert await scene.status(execution) == "FAILED"
    assert types(await scene.events(execution))[-1] == "playbook.failed"


async def test_a_frame_has_the_lease_that_its_loop_names(scene: Scene) -> None:
    text = ROWS.replace("max_rows: 1,", "max_rows: 1, lease_seconds: 7,")
    await scene.start(text, count=1)

    (work,) = await scene.claim()

    assert frame(work).lease_seconds == 7


async def test_a_later_holder_gets_the_calls_that_were_recorded(scene: Scene) -> None:

    execution = await scene.start(CHAIN)
    first = await scene.claim_one(worker("gone"))
    assert isinstance(first, CommandWork)
    call = Call(task="pay", result=inline_result(5), effect="fired", duration_ms=3)
    for _ in range(2):
        await scene.desk.record_call(execution, first.command_id, 1, call)
    scene.rebuild()
    await scene.coordinator.load(execution)
    await scene.pass_time(2 * scene.lease_seconds)

    second = await scene.claim_one()

    assert isinstance(second, CommandWork)
    assert (first.journal, second.journal) == ((), (call,))
    assert count(await scene.events(execution), "call.done") == 1


async def test_nothing_goes_out_while_an_execution_is_paused(scene: Scene) -> None:

    execution = await scene.start(ROWS, count=4)
    held = await scene.claim(2)
    await scene.control.pause(DEFAULT_SCOPE, execution)
    for work in held:
        await scene.finish(work)

    assert await scene.claim() == []
    assert not scene.coordinator.seats.starving
    await scene.control.resume(DEFAULT_SCOPE, execution)
    assert await scene.run_to_the_end(execution) == "COMPLETED"


CURSOR = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: drain, path: handout/drain}
workflow:
  - step: each
    loop:
      cursor: {kind: sqlite, database: work.db, claim: "SELECT 1"}
      iterator: row
      spec: {mode: cursor, max_in_flight: 2, engine: local}
    tool: {kind: noop}
"""


async def test_a_frame_of_a_cursor_knows_whose_claims_may_still_be_asked_for(scene: Scene) -> None:
    await scene.start(CURSOR)
    first, second = [frame(work) for work in await scene.claim(2)]

    assert first.open_frames == (first.frame_id,)
    assert second.open_frames == (first.frame_id, second.frame_id)
