"""A command becomes a job, its calls are recorded, and its end is a report."""

from typing import Any

import pytest

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.events.values import Failure, Result
from noetl.domain.work import Call, LeaseAnswer
from noetl.kernel.errors import ClaimLost, LogUnavailable
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.templates.layered import PipelineResult, plain_result
from noetl.templates.recorded import INLINE_BYTES_MAX, value_of
from tests.unit.runtime.worker_scene import SCOPE, Behaving, Scene, command, facts, only_command

BROKE = Failure(kind="timeout", message="it took too long")
CALL = Call(task="post", run=2, effect="fired")


def ends(result: RowResult) -> Behaving:
    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return result

    return Behaving(run)


async def ran(result: RowResult, **fields: Any) -> tuple[Scene, Behaving]:
    pipelines = ends(result)
    scene = Scene(pipelines)
    async with scene.running():
        await scene.do(command(**fields))
    return scene, pipelines


async def test_the_job_is_the_command_with_the_calls_of_its_journal() -> None:
    work = command(claim=2, journal=(CALL,), facts=facts(total=3))
    _, pipelines = await ran(RowResult(status="ok"), claim=2, journal=(CALL,), facts=facts(total=3))

    (job,) = pipelines.jobs
    assert (job.step.name, job.visit, job.command_id) == ("load", 1, work.command_id)
    assert job.ctx == {"total": 3}
    assert job.journal == {("post", 2): CALL}
    assert job.has_predecessor
    assert (job.iteration, job.frame) == (None, None)


async def test_a_first_claim_has_no_predecessor() -> None:
    _, pipelines = await ran(RowResult(status="ok"))

    assert not pipelines.jobs[0].has_predecessor


@pytest.mark.parametrize("status", ["ok", "break"])
async def test_the_report_tells_all_of_the_end(status: Any) -> None:
    change = BusinessObjectChanged(object="order", id="o1")
    scene, _ = await ran(
        RowResult(
            status=status,
            value={"n": 1},
            writes={"total": 4, "totals.paid": 1},
            emitted=(change,),
            calls=(CALL,),
        ),
        claim=3,
    )

    report = only_command(scene.desk)
    assert report.result == Result(status="ok", context={"value": {"n": 1}})
    assert report.error is None
    assert list(report.writes.items()) == [("total", 4), ("totals.paid", 1)]
    assert (report.emitted, report.calls, report.claim) == ((change,), (CALL,), 3)


async def test_a_failed_tool_has_an_error_and_what_it_said_in_failing() -> None:
    scene, _ = await ran(RowResult(status="failed", error=BROKE, value={"half": "done"}))

    report = only_command(scene.desk)
    said = Result(status="error", context={"value": {"half": "done"}})
    assert (report.error, report.result) == (BROKE, said)


@pytest.mark.parametrize("value", [None, PipelineResult({})])
async def test_a_failure_that_says_nothing_has_no_result(value: PipelineResult | None) -> None:
    scene, _ = await ran(RowResult(status="failed", error=BROKE, value=value))

    report = only_command(scene.desk)
    assert (report.error, report.result) == (BROKE, None)


async def test_a_failed_pipeline_keeps_the_tasks_that_succeeded() -> None:
    done = PipelineResult({"fetch": {"n": 1}})
    scene, _ = await ran(RowResult(status="failed", error=BROKE, value=done))

    report = only_command(scene.desk)
    assert report.error == BROKE
    assert report.result is not None
    assert report.result.status == "error"
    assert report.result.context == {"tasks": {"fetch": {"n": 1}}, "order": ["fetch"]}


async def test_a_large_result_is_stored_before_it_is_reported() -> None:
    rows = [{"n": number, "text": "x" * 200} for number in range(900)]
    scene, _ = await ran(RowResult(status="ok", value=rows))

    result = only_command(scene.desk).result
    assert result is not None
    assert await stored(scene, result) == {"value": rows}
    assert "extracted" in result.context


async def stored(scene: Scene, result: Result) -> Any:
    assert result.reference is not None
    return await scene.results.content(SCOPE, result.reference.uri, result.reference)


@pytest.mark.parametrize("excess", [0, 1])
async def test_the_budget_decides_what_is_inline(excess: int) -> None:
    text = "x" * (INLINE_BYTES_MAX - len('{"value":""}') + excess)
    scene, _ = await ran(RowResult(status="ok", value=text))

    result = only_command(scene.desk).result
    assert result is not None
    assert (result.reference is not None) == bool(excess)
    if result.reference is None:
        assert value_of(result) == text
    else:
        fetched = {result.reference.uri: await stored(scene, result)}
        assert plain_result(value_of(result, fetched)) == text


async def test_calls_are_recorded_at_the_desk_before_the_pipeline_goes_on() -> None:
    async def run(_job: Job, journal: Journal, _hold: Hold) -> RowResult:
        await journal.record(CALL)
        return RowResult(status="ok", value=len(scene.desk.calls))

    scene = Scene(Behaving(run))
    scene.desk.trouble = {"record_call": [LogUnavailable("the log is away")]}
    async with scene.running():
        await scene.do(command())
        await scene.clock.advance(1)

    assert scene.desk.calls == [CALL]
    assert only_command(scene.desk).result == Result(status="ok", context={"value": 1})


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_call_that_may_not_be_recorded_any_more_ends_the_work(is_gone: bool) -> None:
    async def run(_job: Job, journal: Journal, _hold: Hold) -> RowResult:
        await journal.record(CALL)
        raise AssertionError("the pipeline must not go on")

    scene = Scene(Behaving(run))
    if is_gone:
        scene.desk.trouble = {"record_call": [ClaimLost("the work", "has another holder")]}
    else:
        scene.desk.answer = LeaseAnswer(next_action="stop")
    async with scene.running():
        await scene.do(command())

    assert scene.desk.reports == []
    assert scene.worker.counts.lost == 1
