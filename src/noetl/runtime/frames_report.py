"""What became of a frame's rows, as its report carries it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import ResultName
from noetl.domain.work import FrameReport, FrameWork, RowOutcome
from noetl.kernel import canonical_json
from noetl.kernel.ids import WorkerId
from noetl.pipeline.job import RowResult
from noetl.results.dataset import content_of_outcomes
from noetl.results.store import ResultStore
from noetl.runtime.frames_metrics import task_numbers
from noetl.templates.layered import plain_result

OUTCOMES_BYTES_MAX = 4_096
"""What a frame's event holds of its rows; more than that lies in the payload store."""

CYCLES_NAMED_MAX = 50
"""Cycles of each kind that a frame's event names; it counts all of them."""

COPIES_BYTES_MAX = 16 * 1024 * 1024
"""A frame's one value stands on every row, unless that makes more than this of it."""


@dataclass(frozen=True, slots=True)
class Worked:
    """The rows that were worked on, from the frame's first without a gap."""

    outcomes: list[RowOutcome]
    results: Sequence[RowResult]  # in index order; a whole frame has one
    duration_ms: int


def row_outcomes(first_index: int, results: Sequence[RowResult]) -> list[RowOutcome]:
    return [
        RowOutcome(
            index=index,
            status=result.status,
            value=plain_result(result.value),
            error=result.error,
            writes=dict(result.writes),
        )
        for index, result in enumerate(results, first_index)
    ]


def whole_frame_outcomes(work: FrameWork, result: RowResult) -> list[RowOutcome]:
    """A list with a value for every row is dealt out; anything else is the value of every row."""
    values = _dealt(plain_result(result.value), work.row_count)
    return [
        RowOutcome(
            index=work.first_index + row,
            status=result.status,
            value=value,
            error=result.error,
            writes=dict(result.writes) if row == 0 else {},
        )
        for row, value in enumerate(values)
    ]


def _dealt(value: Any, row_count: int) -> list[Any]:
    if isinstance(value, list) and len(value) == row_count:
        return value
    if row_count * len(canonical_json.encode(value)) > COPIES_BYTES_MAX:
        return [value, *[None] * (row_count - 1)]
    return [value] * row_count


@dataclass(frozen=True, slots=True)
class Output:
    reference: ResultReference | None
    outcomes: tuple[RowOutcome, ...]  # all of them when there is no reference, else the first


async def staged(outcomes: list[RowOutcome], work: FrameWork, results: ResultStore) -> Output:
    """The output of the frame, under its name; a few small rows stay in the event."""
    return await staged_as(output_name(work), outcomes, results)


async def staged_as(name: ResultName, outcomes: list[RowOutcome], results: ResultStore) -> Output:
    shown = shown_of(outcomes)
    if len(shown) == len(outcomes):
        return Output(None, shown)
    content = content_of_outcomes(outcomes)
    reference = await results.stage_rows(name, content)
    return Output(msgspec.structs.replace(reference, row_count=len(outcomes)), shown)


def output_name(work: FrameWork) -> ResultName:
    return ResultName(
        tenant=work.scope.tenant_id,
        project=work.scope.organization_id,
        execution_id=work.execution_id,
        step=work.step,
        frame=work.ordinal,
        attempt=work.holder,
        visit=work.visit,
    )


def shown_of(outcomes: Sequence[RowOutcome]) -> tuple[RowOutcome, ...]:
    """As many of the first as fit into an event."""
    shown: list[RowOutcome] = []
    left = OUTCOMES_BYTES_MAX - len("[]") + len(",")
    for outcome in outcomes:
        left -= len(canonical_json.encode(outcome)) + len(",")
        if left < 0:
            break
        shown.append(outcome)
    return tuple(shown)


def report(work: FrameWork, worker: WorkerId, worked: Worked, output: Output) -> FrameReport:
    failed = [outcome for outcome in worked.outcomes if outcome.status == "failed"]
    adopted = [cycle for result in worked.results for cycle in result.adopted]
    repeated = [cycle for result in worked.results for cycle in result.repeated]
    in_doubt = [cycle for result in worked.results for cycle in result.in_doubt]
    return FrameReport(
        execution_id=work.execution_id,
        stage_id=work.stage_id,
        frame_id=work.frame_id,
        attempt=work.attempt,
        worker_id=worker,
        row_count=len(worked.outcomes),
        failed_rows=len(failed),
        broken_rows=sum(outcome.status == "break" for outcome in worked.outcomes),
        output=output.reference,
        outcomes=output.outcomes,
        writes=_last_writes(worked.results),
        row_error=failed[0].error if failed else None,
        emitted=tuple(change for result in worked.results for change in result.emitted),
        repeated=tuple(repeated[:CYCLES_NAMED_MAX]),
        adopted=tuple(adopted[:CYCLES_NAMED_MAX]),
        in_doubt=tuple(in_doubt[:CYCLES_NAMED_MAX]),
        metrics={
            "duration_ms": worked.duration_ms,
            "rows": len(worked.outcomes),
            "outcomes": dict(Counter(outcome.status for outcome in worked.outcomes)),
            "row_concurrency": work.row_concurrency,
            **task_numbers(worked.results),
            "effects": {
                "fired": sum(result.fired for result in worked.results),
                "adopted": len(adopted),
                "repeated": len(repeated),
                "in_doubt": len(in_doubt),
            },
            "effects_by_tool": _by_tool(worked.results),
        },
    )


def _by_tool(results: Sequence[RowResult]) -> dict[str, dict[str, int]]:
    """How many effects of each tool were plain fires, adopted, repeated and in doubt."""
    total: dict[str, dict[str, int]] = {}
    for result in results:
        for (outcome, tool), count in result.outcomes.items():
            counts = total.setdefault(tool, {})
            counts[outcome] = counts.get(outcome, 0) + count
    return total


def _last_writes(results: Sequence[RowResult]) -> dict[str, Any]:
    """The last writer by index, and in that order: a path may lie inside another one."""
    writes: dict[str, Any] = {}
    for result in results:
        for name, value in result.writes.items():
            writes.pop(name, None)
            writes[name] = value
    return writes
