"""What is told of a loop's rows agrees with the log, however the loop ended."""

import msgspec
import pytest

from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.domain.events.values import Failure
from noetl.domain.work import FrameReport, FrameWork, RowOutcome, Work
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.executions import Executions
from noetl.testing.desk_words import CURSOR, ROWS, SHARDS, ended, started, with_rows
from tests.unit.runtime.desk_scene import WORKER, Scene

BROKEN = Failure(kind="client_error", message="no such order")
CONTINUED = ROWS.replace(
    "    loop:", "    spec: {policy: {failure: {mode: continue}}}\n    loop:"
).replace("max_in_flight: 100", "max_in_flight: 1")
TRIED_ONCE = SHARDS.replace("mode: fanout", "mode: fanout, fanout: {max_shard_retries: 0}")
FAIL_FAST = ROWS.replace("max_in_flight: 100", "max_in_flight: 1")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def failing(work: Work) -> FrameReport:
    report = ended(work, WORKER)
    assert isinstance(report, FrameReport)
    bad = RowOutcome(index=report.outcomes[0].index, status="failed", error=BROKEN)
    return msgspec.structs.replace(report, outcomes=(bad,), failed_rows=1, row_error=BROKEN)


async def told(scene: Scene, execution: ExecutionId) -> tuple[int | None, int, int, int]:
    """total, done, failed, skipped"""
    executions = Executions(scene.log, MemoryProjectionStore(), scene.results)
    (loop,) = (await executions.show(DEFAULT_SCOPE, execution)).loop_progress
    return loop.total, loop.done, loop.failed, loop.skipped


async def one_of(scene: Scene) -> Work:
    (work,) = await scene.claim(1)
    return work


async def test_a_loop_that_failed_ran_fewer_rows_than_it_has(scene: Scene) -> None:
    execution = await scene.start(FAIL_FAST, count=5)
    await scene.finish(await one_of(scene))
    assert await told(scene, execution) == (5, 1, 0, 0)
    await scene.report(failing(await one_of(scene)))

    assert await scene.status(execution) == "FAILED"
    assert await told(scene, execution) == (5, 1, 1, 3)


async def test_a_retried_loop_counts_the_rows_that_it_kept(scene: Scene) -> None:
    execution = await scene.start(FAIL_FAST, count=5)
    await scene.finish(await one_of(scene))
    await scene.report(failing(await one_of(scene)))
    await scene.control.retry(DEFAULT_SCOPE, execution)
    assert await told(scene, execution) == (5, 1, 0, 0)
    await scene.finish(await one_of(scene))
    await scene.report(failing(await one_of(scene)))
    assert await told(scene, execution) == (5, 2, 1, 2)

    await scene.control.retry(DEFAULT_SCOPE, execution)
    await scene.run_to_the_end(execution)
    assert await told(scene, execution) == (5, 5, 0, 0)


async def test_a_loop_that_goes_on_after_failures_runs_all_rows(scene: Scene) -> None:
    execution = await scene.start(CONTINUED, count=3)
    await scene.report(failing(await one_of(scene)))
    await scene.run_to_the_end(execution)
    assert await told(scene, execution) == (3, 2, 1, 0)

    await scene.control.retry(DEFAULT_SCOPE, execution)
    assert await told(scene, execution) == (3, 2, 0, 0)
    await scene.run_to_the_end(execution)
    assert await told(scene, execution) == (3, 3, 0, 0)


async def test_a_cancelled_loop_has_rows_that_never_ended(scene: Scene) -> None:
    execution = await scene.start(FAIL_FAST, count=5)
    await scene.finish(await one_of(scene))
    await scene.claim(1)
    await scene.cancel(execution)
    assert await told(scene, execution) == (5, 1, 0, 4)


async def test_shards_are_counted_like_rows(scene: Scene) -> None:
    execution = await scene.start(TRIED_ONCE, count=3)
    first, *others = await scene.claim()
    await scene.report(failing(first))
    for work in others:
        await scene.finish(work)
    assert await scene.run_to_the_end(execution) == "COMPLETED"
    assert await told(scene, execution) == (3, 2, 1, 0)


async def test_a_cursor_s_rows_are_counted_as_they_come(scene: Scene) -> None:
    execution = await scene.start(CURSOR, count=1)
    work = await one_of(scene)
    assert isinstance(work, FrameWork)
    assert await told(scene, execution) == (None, 0, 0, 0)
    rows = [{"id": 1}]
    answer = await scene.desk.frame_started(started(work, WORKER, rows))
    await scene.report(failing(with_rows(work, answer, rows)))
    assert await told(scene, execution) == (None, 0, 1, 0)
    await scene.run_to_the_end(execution)
    assert await told(scene, execution) == (1, 0, 1, 0)
