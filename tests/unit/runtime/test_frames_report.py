"""What a frame reports of its rows: outcomes, effects, times, and a large output by reference."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events.values import Failure, ResultReference
from noetl.domain.work import RowOutcome
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.pipeline.timing import TaskTime
from noetl.results.dataset import rows_of
from noetl.runtime.frames_report import CYCLES_NAMED_MAX, OUTCOMES_BYTES_MAX
from noetl.templates.layered import PipelineResult
from noetl.templates.places import Frame
from tests.unit.runtime.frame_scene import doubled, index_of, ran
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import (
    LOOP,
    SCOPE,
    Behaving,
    Behaviour,
    Scene,
    frame,
    only_frame,
)

BROKE = Failure(kind="timeout", message="it took too long")
WHOLE = LOOP.replace("mode: parallel", "mode: parallel, frame: {process: frame}")


async def test_a_broken_row_counts_as_done() -> None:
    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="break", value=1)

    report = await ran(run, [0, 0])

    assert (report.row_count, report.broken_rows, report.failed_rows) == (2, 2, 0)
    assert report.outcomes[0] == RowOutcome(index=0, status="break", value=1)


async def test_a_pipeline_row_is_worth_its_last_task() -> None:
    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="ok", value=PipelineResult({"get": 1, "put": {"n": 2}}))

    report = await ran(run, [0])

    assert report.outcomes[0].value == {"n": 2}


async def test_the_metrics_tell_time_and_effects() -> None:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        row = index_of(job)
        cycles = (f"{job.coordinates}/post/1",)
        return RowResult(
            status="ok",
            times={"get": TaskTime("http", 1, 0.001), "post": TaskTime("shell", 1, 0.01)},
            fired=2,
            repeated=cycles if row == 1 else (),
            adopted=cycles if row != 1 else (),
            in_doubt=cycles if row == 2 else (),
            outcomes={("fired", "http"): 1, ("repeated" if row == 1 else "fired", "shell"): 1},
        )

    report = await ran(run, [0, 0, 0], failure="continue")

    assert report.repeated == ("77/load/1/1/post/1",)
    assert report.adopted == ("77/load/1/0/post/1", "77/load/1/2/post/1")
    assert report.in_doubt == ("77/load/1/2/post/1",)
    rest = {"tries": 3, "render_ms": 0, "tool_ms": 0}
    assert report.metrics == {
        "duration_ms": 0,
        "rows": 3,
        "outcomes": {"ok": 3},
        "row_concurrency": 1,
        "task_ms": {"get": 3, "post": 30},
        "total_task_ms": 33,
        "total_render_ms": 0,
        "total_tool_ms": 0,
        "by_task": {
            "get": {"kind": "http", "task_ms": 3, **rest},
            "post": {"kind": "shell", "task_ms": 30, **rest},
        },
        "by_kind": {"http": {"task_ms": 3, **rest}, "shell": {"task_ms": 30, **rest}},
        "effects": {"fired": 6, "adopted": 2, "repeated": 1, "in_doubt": 1},
        "effects_by_tool": {"http": {"fired": 3}, "shell": {"fired": 2, "repeated": 1}},
    }


async def test_a_frame_names_its_first_cycles_and_counts_all() -> None:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="ok", adopted=(f"{job.coordinates}/post/1",))

    report = await ran(run, [0] * (CYCLES_NAMED_MAX + 9))

    assert report.adopted == tuple(f"77/load/1/{row}/post/1" for row in range(CYCLES_NAMED_MAX))
    assert report.metrics["effects"]["adopted"] == CYCLES_NAMED_MAX + 9


async def test_a_large_output_lies_in_the_payload_store() -> None:
    scene = Scene(Behaving(doubled), steps=LOOP)
    async with scene.running():
        await scene.do(frame(list(range(500)), row_concurrency=7, first_index=100))

    report = only_frame(scene.desk)
    assert report.output is not None
    assert (report.output.row_count, report.row_count) == (500, 500)
    decoded = await stored(scene, report.output)
    assert [each.value for each in decoded] == [2 * number for number in range(500)]
    assert [each.index for each in decoded] == list(range(100, 600))
    assert report.outcomes == tuple(decoded[: len(report.outcomes)])
    assert OUTCOMES_BYTES_MAX - 100 < len(msgspec.json.encode(report.outcomes))
    assert len(msgspec.json.encode(report.outcomes)) <= OUTCOMES_BYTES_MAX


async def stored(scene: Scene, reference: ResultReference) -> list[RowOutcome]:
    rows = rows_of(await scene.results.content(SCOPE, reference.uri, reference))
    said = [{name: part for name, part in row.items() if part is not None} for row in rows]
    return msgspec.convert(said, type=list[RowOutcome])


@pytest.mark.parametrize("excess", [0, 1])
async def test_a_small_output_is_whole_in_the_report(excess: int) -> None:
    around = len('[{"index":0,"status":"ok","value":""}]')

    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="ok", value="x" * (OUTCOMES_BYTES_MAX - around + excess))

    report = await ran(run, [0])

    assert (report.output is None) == (not excess)
    assert len(report.outcomes) == 1 - excess


def whole(frame_given: list[Any]) -> Behaviour:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        assert job.iteration is None
        assert isinstance(job.frame, Frame)
        assert job.coordinates == "77/load/1/3"  # the frame's own number
        result = frame_given[0]
        if result == "rows":
            result = [2 * row for row in job.frame.rows]
        return RowResult(status="ok", value=result, writes={"n": 1})

    return run


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("rows", [2, 4, 6]),
        ({"inserted": 3}, [{"inserted": 3}] * 3),
        ([1, 2], [[1, 2]] * 3),
    ],
)
async def test_a_whole_frame_is_one_job(value: Any, expected: list[Any]) -> None:
    pipelines = Behaving(whole([value]))
    scene = Scene(pipelines, steps=WHOLE)
    async with scene.running():
        await scene.do(frame([1, 2, 3], first_index=6, row_concurrency=5))

    report = only_frame(scene.desk)
    assert len(pipelines.jobs) == 1
    assert [each.index for each in report.outcomes] == [6, 7, 8]
    assert [each.value for each in report.outcomes] == expected
    assert (report.writes, report.row_count) == ({"n": 1}, 3)
    assert [each.writes for each in report.outcomes] == [{"n": 1}, {}, {}]


async def test_a_value_of_a_whole_frame_that_is_too_large_to_copy_stands_on_the_first_row() -> None:
    scene = Scene(Behaving(whole(["x" * 10_000_000])), steps=WHOLE)
    async with scene.running():
        await scene.do(frame([1, 2]))
        while not scene.desk.reports:  # large payloads are put away in a thread
            await settle()

    report = only_frame(scene.desk)
    assert report.output is not None
    first, second = await stored(scene, report.output)
    assert (len(first.value), second.value) == (10_000_000, None)


async def test_a_whole_frame_fails_as_a_whole() -> None:
    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="failed", error=BROKE)

    scene = Scene(Behaving(run), steps=WHOLE)
    async with scene.running():
        await scene.do(frame([1, 2]))

    report = only_frame(scene.desk)
    assert (report.row_count, report.failed_rows, report.row_error) == (2, 2, BROKE)
