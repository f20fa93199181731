"""The rows of a frame run in order or side by side; what was worked on is committed."""

import asyncio
from typing import Any

import pytest

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.events.values import Failure
from noetl.domain.work import JournalEntry, LeaseAnswer
from noetl.kernel.ids import FrameId
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.templates.places import Iteration
from tests.unit.runtime.frame_scene import doubled, index_of, ran
from tests.unit.runtime.worker_scene import (
    EXECUTION,
    LOOP,
    Behaving,
    Behaviour,
    Gate,
    Scene,
    facts,
    frame,
    only_frame,
)

BROKE = Failure(kind="timeout", message="it took too long")


async def test_outcomes_are_in_index_order_however_the_rows_end() -> None:
    waits = [asyncio.Event() for _ in range(4)]
    waits[3].set()

    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        row = index_of(job) - 10
        await waits[row].wait()
        waits[row - 1].set()
        change = BusinessObjectChanged(object="order", id=str(row))
        return RowResult(
            status="ok", value=f"v{row}", writes={"last": row, f"r{row}": row}, emitted=(change,)
        )

    report = await ran(run, [1, 2, 3, 4], first_index=10, row_concurrency=4)

    assert [(each.index, each.value) for each in report.outcomes] == [
        (10, "v0"),
        (11, "v1"),
        (12, "v2"),
        (13, "v3"),
    ]
    assert report.writes == {"last": 3, "r0": 0, "r1": 1, "r2": 2, "r3": 3}
    assert [change.id for change in report.emitted] == ["0", "1", "2", "3"]
    assert report.row_count == 4


async def test_a_row_sees_its_item_its_place_and_its_frame() -> None:
    pipelines = Behaving(doubled)
    scene = Scene(pipelines, steps=LOOP)
    await scene.journal.append(EXECUTION, FrameId("f1"), [JournalEntry(row=21, rows=1)])
    async with scene.running():
        await scene.do(frame([7, 8], first_index=20, total=30, attempt=2, facts=facts(a=1)))

    second = pipelines.jobs[1]
    assert second.iteration == Iteration(iterator="order", item=8, index=21, total=30)
    assert second.frame is not None
    assert (second.frame.index, second.frame.base_index, second.frame.row_count) == (3, 20, 2)
    assert (second.ctx, second.stage_id, second.command_id) == ({"a": 1}, "s1", None)
    assert [job.has_predecessor for job in pipelines.jobs] == [False, True]
    assert second.coordinates == "77/load/1/21"


async def test_a_cursor_does_not_know_its_total() -> None:
    pipelines = Behaving(doubled)
    scene = Scene(pipelines, steps=LOOP)
    async with scene.running():
        await scene.do(frame([7], mode="cursor"))

    assert pipelines.jobs[0].iteration is not None
    assert pipelines.jobs[0].iteration.total is None


@pytest.mark.parametrize(("at_once", "expected"), [(1, 1), (3, 3), (100, 10)])
async def test_at_most_row_concurrency_rows_run_at_once(at_once: int, expected: int) -> None:
    gate = Gate()
    scene = Scene(Behaving(gate), steps=LOOP)
    async with scene.running():
        await scene.do(frame(list(range(10)), row_concurrency=at_once))
        for _ in range(10):
            await gate.let_through()

        assert gate.inside_most == expected
        assert only_frame(scene.desk).row_count == 10


async def test_sequential_rows_see_what_the_rows_before_them_wrote() -> None:
    seen: list[Any] = []

    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        seen.append(dict(job.ctx))
        await asyncio.sleep(0)
        row = index_of(job)
        return RowResult(status="ok", writes={"sum.all": row, "own": row} if row != 1 else {})

    given = facts(own="given")
    report = await ran(run, ["a", "b", "c"], mode="sequential", row_concurrency=9, facts=given)

    first = {"own": 0, "sum": {"all": 0}}
    assert seen == [{"own": "given"}, first, first]
    assert report.writes == {"sum.all": 2, "own": 2}
    assert given.ctx == {"own": "given"}


async def test_parallel_rows_see_the_stage_as_it_opened() -> None:
    seen: list[Any] = []

    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        seen.append(dict(job.ctx))
        return RowResult(status="ok", writes={"n": index_of(job)})

    await ran(run, ["a", "b"], facts=facts(n="given"))

    assert seen == [{"n": "given"}, {"n": "given"}]


async def test_the_last_writer_of_a_path_inside_another_is_the_last_to_be_applied() -> None:
    written: list[dict[str, Any]] = [{"a.b": 1}, {"a": {}}, {"a.b": 3}]

    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="ok", writes=written[index_of(job)])

    report = await ran(run, [0, 0, 0])

    assert list(report.writes.items()) == [("a", {}), ("a.b", 3)]


def failing_at(*rows: int) -> Behaviour:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        if index_of(job) in rows:
            error = Failure(kind="timeout", message=f"row {index_of(job)}")
            return RowResult(status="failed", error=error)
        return RowResult(status="ok", value=index_of(job))

    return run


async def test_after_a_failed_row_no_other_starts() -> None:
    report = await ran(failing_at(2), list(range(6)))

    assert (report.row_count, report.failed_rows) == (3, 1)
    assert report.row_error == Failure(kind="timeout", message="row 2")
    assert report.error is None
    assert [each.status for each in report.outcomes] == ["ok", "ok", "failed"]
    assert report.outcomes[2].error == report.row_error


async def test_rows_that_run_beside_a_failed_one_come_to_their_end() -> None:
    gate = asyncio.Event()

    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        row = index_of(job)
        if row == 2:
            await asyncio.sleep(0)  # the others have started
            return RowResult(status="failed", error=BROKE)
        await gate.wait()
        return RowResult(status="ok", value=row)

    scene = Scene(Behaving(run), steps=LOOP)
    async with scene.running():
        await scene.do(frame(list(range(9)), row_concurrency=4))
        assert scene.desk.reports == []
        gate.set()
        await scene.do()

    report = only_frame(scene.desk)
    assert [(each.index, each.status) for each in report.outcomes] == [
        (0, "ok"),
        (1, "ok"),
        (2, "failed"),
        (3, "ok"),
    ]


@pytest.mark.parametrize("fields", [{"failure": "continue"}, {"mode": "cursor"}])
async def test_where_failures_are_borne_all_rows_run(fields: dict[str, Any]) -> None:
    report = await ran(failing_at(1, 3), list(range(5)), **fields)

    assert (report.row_count, report.failed_rows) == (5, 2)
    assert report.row_error == Failure(kind="timeout", message="row 1")


def slow_rows(scene: "list[Scene]", seconds: float) -> Behaviour:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        await scene[0].clock.sleep(seconds)
        return RowResult(status="ok", value=index_of(job))

    return run


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ({"seconds_max": 10}, 3),  # rows end after 4, 8 and 12 seconds
        ({"seconds_max": 0}, 1),  # every frame gets on
        ({"seconds_max": 10, "row_concurrency": 2}, 6),
        ({"seconds_max": 10, "mode": "sequential"}, 3),
        ({"seconds_max": 10, "mode": "cursor"}, 9),  # what it has claimed it works off
        ({}, 9),
    ],
)
async def test_after_its_time_a_frame_commits_the_rows_it_has(
    fields: dict[str, Any], rows: int
) -> None:
    scenes: list[Scene] = []
    scene = Scene(Behaving(slow_rows(scenes, 4)), steps=LOOP)
    scenes.append(scene)
    async with scene.running():
        await scene.do(frame(list(range(9)), **fields))
        await scene.clock.advance(60)

    report = only_frame(scene.desk)
    assert [each.index for each in report.outcomes] == list(range(rows))
    assert report.row_count == rows


async def test_a_frame_that_is_told_to_wait_commits_the_rows_it_has() -> None:
    scenes: list[Scene] = []
    scene = Scene(Behaving(slow_rows(scenes, 4)), steps=LOOP)
    scenes.append(scene)
    scene.desk.answer = LeaseAnswer(next_action="wait")
    async with scene.running():
        await scene.do(frame(list(range(9)), row_concurrency=2))
        await scene.clock.advance(60)  # told after 10 seconds, while rows 4 and 5 run

    assert only_frame(scene.desk).row_count == 6


async def test_a_fault_in_one_row_ends_the_others_and_is_reported() -> None:
    gate = Gate()

    async def run(job: Job, journal: Journal, hold: Hold) -> RowResult:
        if index_of(job) == 2:
            raise LookupError("a fault of ours")
        return await gate(job, journal, hold)

    report = await ran(run, list(range(5)), row_concurrency=3)

    assert gate.inside == []
    assert report.error is not None
    assert (report.error.kind, report.row_count) == ("unknown", 0)


async def test_an_empty_frame_commits_nothing() -> None:
    report = await ran(doubled, [])

    assert (report.row_count, report.outcomes, report.error) == (0, (), None)
