"""What a worker by frames says of a frame's end, as the report that our own workers make."""

from typing import Any

from noetl.domain.events.values import Failure, ResultReference
from noetl.domain.execution.rows import FrameRow
from noetl.domain.execution.state import LoopWork
from noetl.domain.frame_messages import FrameCommit
from noetl.domain.naming.result_name import ResultName
from noetl.domain.work import FrameReport, RowOutcome, holder_of
from noetl.kernel.errors import ClaimLost, OutputNotDurable, RequestInvalid
from noetl.kernel.ids import LoopId, WorkerId
from noetl.results.dataset import DatasetPart, outcomes_of
from noetl.results.store import ResultStore
from noetl.runtime.frames_report import Output, shown_of, staged_as
from noetl.runtime.running import Running

DURABLE = ("uri", "ref", "locator")
"""Under which of its fields a reference names what lasts; `ipc` is a hint to memory."""

UNEXPLAINED = Failure(kind="unknown", message="the worker gave the frame up and did not say why")


async def report_of(
    row: FrameRow, running: Running, commit: FrameCommit, results: ResultStore
) -> FrameReport:
    """Raises RequestInvalid for what cannot be the end of this frame; nothing is recorded then."""
    uri = durable_uri(commit.output_ref)
    if commit.status == "FAILED":
        return _report(row, running, commit, error=commit.error or UNEXPLAINED)
    if commit.error is not None:
        raise RequestInvalid("a completed frame has no error; failed rows say so in `outcomes`")
    outcomes, output = await _rows(row, running, commit, _reference(commit, uri), results)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    return _report(
        row,
        running,
        commit,
        row_count=len(outcomes),
        failed_rows=len(failed),
        broken_rows=sum(outcome.status == "break" for outcome in outcomes),
        output=output.reference,
        outcomes=output.outcomes,
        row_error=failed[0].error or UNEXPLAINED if failed else None,
    )


def durable_uri(output: dict[str, Any] | None) -> str | None:
    """Where the output lies; a copy in memory alone is refused."""
    if output is None:
        return None
    for part in (output, output.get("rows_ref")):
        if isinstance(part, dict):
            found = next((part[name] for name in DURABLE if isinstance(part.get(name), str)), None)
            if found is not None:
                return str(found)
    raise OutputNotDurable(
        "output_ref names no durable copy: give `uri` (or `ref`, `locator`) beside the `ipc` hint,"
        " or send the rows as `outcomes`"
    )


def _reference(commit: FrameCommit, uri: str | None) -> ResultReference | None:
    if uri is None:
        return None
    told = {**(commit.output_ref or {}).get("rows_ref", {}), **(commit.output_ref or {})}
    texts = {
        name: told[name]
        for name in ("sha256", "media_type", "schema_digest", "encoder", "arrow_version")
        if isinstance(told.get(name), str)
    }
    size = told.get("byte_length")
    length = size if isinstance(size, int) else None
    return ResultReference(type="object_store", uri=uri, byte_length=length, **texts)


async def _rows(
    row: FrameRow,
    running: Running,
    commit: FrameCommit,
    reference: ResultReference | None,
    results: ResultStore,
) -> tuple[list[RowOutcome], Output]:
    """How its rows ended, and where that is kept."""
    work = _loop_of(row, running)
    window = None if work is None else work.out.get(row.frame_id)
    first, rows = (0, 0) if window is None else (window.first, window.rows)
    if reference is not None:
        part = DatasetPart(first=first, rows=rows, reference=reference)
        outcomes = outcomes_of(await results.rows(running.source.scope, part))
        _check(row, commit, outcomes, first, rows)
        return outcomes, Output(reference, shown_of(outcomes))
    count = rows if commit.row_count is None else commit.row_count
    ends = commit.outcomes
    outcomes = (
        [RowOutcome(index=first + each, status="ok") for each in range(min(count, rows + 1))]
        if ends is None
        else [
            RowOutcome(index=first + each, status=end.status, value=end.value, error=end.error)
            for each, end in enumerate(ends)
        ]
    )
    _check(row, commit, outcomes, first, rows)
    return outcomes, await staged_as(_name(row, running), outcomes, results)


def _check(
    row: FrameRow, commit: FrameCommit, outcomes: list[RowOutcome], first: int, rows: int
) -> None:
    if not rows and outcomes:
        raise ClaimLost(
            f"frame {row.frame_id}",
            "has claimed no rows yet: say which ones with POST /api/work/frames/started first",
        )
    if commit.row_count is not None and commit.row_count != len(outcomes):
        raise RequestInvalid(f"row_count is {commit.row_count}, and {len(outcomes)} rows are told")
    if rows and not outcomes:
        raise RequestInvalid("a frame that completes tells of one row at least; else it has failed")
    if len(outcomes) > rows:
        raise RequestInvalid(f"the frame has {rows} rows, and {len(outcomes)} are told")
    if [outcome.index for outcome in outcomes] != [*range(first, first + len(outcomes))]:
        raise RequestInvalid(f"rows are told in order, without gaps, from index {first} on")


def _name(row: FrameRow, running: Running) -> ResultName:
    stage, scope = running.state.stages[row.stage_id], running.source.scope
    work = _loop_of(row, running)
    return ResultName(
        tenant=scope.tenant_id,
        project=scope.organization_id,
        execution_id=running.execution_id,
        step=stage.step,
        frame=row.ordinal,
        attempt=holder_of(row.attempts, 1 if work is None else work.attempt),
        visit=stage.visit,
    )


def _loop_of(row: FrameRow, running: Running) -> LoopWork | None:
    stage = running.state.stages.get(row.stage_id)
    return None if stage is None else running.state.loop_work.get(stage.loop_id or LoopId(""))


def _report(row: FrameRow, running: Running, commit: FrameCommit, **more: Any) -> FrameReport:
    return FrameReport(
        execution_id=running.execution_id,
        stage_id=row.stage_id,
        frame_id=row.frame_id,
        attempt=row.attempts,
        worker_id=row.worker_id or WorkerId(""),
        cursor=commit.cursor,
        events_emitted=commit.events_emitted,
        **{"row_count": commit.row_count or 0, **more},
    )
