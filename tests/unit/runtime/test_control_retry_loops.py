"""A person's retry of a loop: rows that ended well stay, the others run under their old names."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events.values import Failure
from noetl.domain.execution.fold import fold
from noetl.domain.work import FrameReport, FrameWork, RowOutcome, Work
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.testing.desk_words import ROWS, claim_of, ended, failed
from tests.unit.runtime.desk_scene import WORKER, Scene

BROKEN = Failure(kind="client_error", message="no such order")
TWO_BY_TWO = ROWS.replace("max_rows: 1,", "max_rows: 2,")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def with_a_failed_row(work: Work, row: int, rows: int) -> FrameReport:
    """Of `rows` rows that were worked on."""
    report = ended(work, WORKER, "done")
    assert isinstance(report, FrameReport)
    bad = RowOutcome(index=row, status="failed", error=BROKEN)
    outcomes = tuple(bad if each.index == row else each for each in report.outcomes[:rows])
    return msgspec.structs.replace(
        report, row_count=rows, outcomes=outcomes, failed_rows=1, row_error=BROKEN
    )


async def frames(scene: Scene, free_slots: int = 100) -> list[FrameWork]:
    works = await scene.claim(free_slots)
    assert all(isinstance(work, FrameWork) for work in works)
    return [work for work in works if isinstance(work, FrameWork)]


async def results(scene: Scene, execution: Any) -> list[Any]:
    *_, done = await scene.of(execution, "loop.done")
    return [done.status, *done.result.context["loop"]["results"]]


async def test_only_rows_that_did_not_end_well_go_out_again(scene: Scene) -> None:
    execution = await scene.start(TWO_BY_TWO, count=6)
    first, second, third = await frames(scene)
    await scene.finish(first, "done")
    await scene.report(with_a_failed_row(second, 3, rows=2))
    await scene.report(failed(third, WORKER, BROKEN))
    assert await scene.status(execution) == "FAILED"
    scene.rebuild()

    await scene.control.retry(DEFAULT_SCOPE, execution)
    again = {work.first_index: work for work in await frames(scene)}

    assert again.keys() == {2, 4}
    assert {(work.visit, work.visit_attempt, claim_of(work)) for work in again.values()} == {
        (1, 2, 1)
    }
    assert again[2].after == (second.frame_id,)
    assert [outcome.status for outcome in again[2].kept] == ["ok", "failed"]
    assert again[2].ordinal == second.ordinal
    assert (again[4].after, again[4].kept) == ((third.frame_id,), ())
    await scene.finish(again[2], "again")
    await scene.finish(again[4], "again")
    assert await results(scene, execution) == ["completed", "done", "done", *["again"] * 4]
    assert await scene.run_to_the_end(execution) == "COMPLETED"
    (_, done) = await scene.of(execution, "loop.done")
    assert (done.stats.total, done.stats.succeeded, done.stats.failed) == (6, 6, 0)


async def test_rows_that_never_began_begin_as_if_nothing_had_happened(scene: Scene) -> None:
    execution = await scene.start(TWO_BY_TWO, count=6)
    (first,) = await frames(scene, 1)
    await scene.report(with_a_failed_row(first, 0, rows=1))

    await scene.control.retry(DEFAULT_SCOPE, execution)

    again = sorted(await frames(scene), key=lambda work: work.first_index)
    assert [(work.first_index, work.row_count, work.after) for work in again] == [
        (0, 1, (first.frame_id,)),
        (1, 1, ()),
        (2, 2, ()),
        (4, 2, ()),
    ]


async def test_the_collection_stays_as_it_was(scene: Scene) -> None:
    changing = TWO_BY_TWO.replace("range(workload.count)", "range(ctx.n | default(4))")
    execution = await scene.start(changing)
    first, second = await frames(scene)
    await scene.finish(first)
    await scene.report(msgspec.structs.replace(with_a_failed_row(second, 2, 2), writes={"n": 9}))

    await scene.control.retry(DEFAULT_SCOPE, execution)

    (again,) = await frames(scene)
    assert (again.facts.ctx, again.total, again.rows) == ({"n": 9}, 4, [2, 3])


async def test_a_cancelled_loop_goes_on_where_it_was(scene: Scene) -> None:
    execution = await scene.start(TWO_BY_TWO, count=6)
    first, second, _ = await frames(scene)
    await scene.finish(first, "done")
    await scene.cancel(execution)

    await scene.control.retry(DEFAULT_SCOPE, execution)

    again = sorted(await frames(scene), key=lambda work: work.first_index)
    assert [work.first_index for work in again] == [2, 4]
    assert again[0].after == (second.frame_id,)
    assert await scene.run_to_the_end(execution) == "RUNNING"
    for work in again:
        await scene.finish(work, "again")
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_loop_can_be_retried_until_it_succeeds(scene: Scene) -> None:
    execution = await scene.start(TWO_BY_TWO, count=4)
    first, second = await frames(scene)
    await scene.report(with_a_failed_row(first, 1, rows=2))
    await scene.finish(second, "done")
    holders = [first.frame_id]
    for attempt in (2, 3):
        await scene.control.retry(DEFAULT_SCOPE, execution)
        (again,) = await frames(scene)
        assert (again.visit_attempt, list(again.after)) == (attempt, holders)
        holders.append(again.frame_id)
        await scene.report(with_a_failed_row(again, 1, rows=2))
        assert await scene.status(execution) == "FAILED"

    await scene.control.retry(DEFAULT_SCOPE, execution)

    assert await scene.run_to_the_end(execution) == "COMPLETED"
    loops = [event.loop_id for event in await scene.of(execution, "loop.done")]
    assert loops == ["each@1", "each@1.2", "each@1.3", "each@1.4"]
    state = fold(await scene.events(execution))
    assert (state.execution.unmatched_events, state.kept_loops) == (0, {})


async def test_a_loop_that_had_succeeded_gets_a_new_visit(scene: Scene) -> None:
    execution = await scene.start(TWO_BY_TWO, count=4)
    assert await scene.run_to_the_end(execution) == "COMPLETED"

    await scene.control.retry(DEFAULT_SCOPE, execution, step=StepName("each"))

    works = await frames(scene)
    assert {(work.visit, work.visit_attempt, work.after) for work in works} == {(2, 1, ())}
    assert len(works) == 2


CONTINUED = TWO_BY_TWO.replace(
    "    loop:", "    spec: {policy: {failure: {mode: continue}}}\n    loop:"
)


async def with_one_row_that_failed(scene: Scene, execution: ExecutionId) -> FrameWork:
    first, second = await frames(scene)
    await scene.finish(first, "done")
    await scene.report(with_a_failed_row(second, 3, rows=2))
    assert await scene.run_to_the_end(execution) == "COMPLETED"
    return second


@pytest.mark.parametrize("step", [None, StepName("each")], ids=["by itself", "by name"])
async def test_rows_that_were_let_fail_go_out_again_and_no_others(
    scene: Scene, step: StepName | None
) -> None:
    execution = await scene.start(CONTINUED, count=4)
    before = await with_one_row_that_failed(scene, execution)
    scene.rebuild()

    await scene.control.retry(DEFAULT_SCOPE, execution, step=step)

    (again,) = await frames(scene)
    assert (again.first_index, again.visit, again.visit_attempt) == (2, 1, 2)
    assert again.after == (before.frame_id,)
    assert [outcome.status for outcome in again.kept] == ["ok", "failed"]
    await scene.finish(again, "again")
    assert await results(scene, execution) == ["completed", "done", "done", "again", "again"]
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_loop_whose_rows_have_all_ended_well_by_a_retry_runs_anew(scene: Scene) -> None:
    execution = await scene.start(CONTINUED, count=4)
    await with_one_row_that_failed(scene, execution)
    await scene.control.retry(DEFAULT_SCOPE, execution)
    assert await scene.run_to_the_end(execution) == "COMPLETED"

    await scene.control.retry(DEFAULT_SCOPE, execution, step=StepName("each"))

    assert {(work.visit, work.visit_attempt) for work in await frames(scene)} == {(2, 1)}
