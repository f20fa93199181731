"""What becomes of a frame: its end as its holder tells it, or the loss of its holder."""

from typing import Any

import msgspec

from noetl.decider.answers import Decided
from noetl.domain.events import (
    BusinessObjectsRecorded,
    FrameAbandoned,
    FrameCommitted,
    FrameFailed,
    FrameStarted,
    ShardFailed,
)
from noetl.domain.events.values import Failure, ResultReference
from noetl.domain.execution.losses import is_given_up
from noetl.domain.execution.rows import FrameRow
from noetl.domain.execution.state import LoopWork
from noetl.domain.work import FrameReport
from noetl.kernel.ids import WorkerId
from noetl.runtime import shards
from noetl.runtime.reports import attempts_of, held_frame, loop_of
from noetl.runtime.turn import Turn, about_frame

FRAME_FAILURES_MAX = 3
"""What a worker reports as failed is mostly so for the next one, too."""

REAPER = WorkerId("@reaper")
"""Who takes frames back whose lease ran out."""


def frame_ended(turn: Turn, report: FrameReport, objects: ResultReference | None) -> None:
    row = held_frame(turn, report.frame_id, report.attempt, report.worker_id)
    loop = loop_of(turn, report.frame_id)
    if row.status == "CLAIMED":  # a claim that found nothing is told of in one go
        started = FrameStarted(worker_id=report.worker_id)
        turn.add(about_frame(started, report.frame_id, loop))
    work = None if loop is None else turn.state.loop_work.get(loop)
    metrics = {**report.metrics, **_named_cycles(report)}
    if work is not None and work.mode == "fanout":
        shard = shards.ended(work, report, metrics)
        turn.add(*_emitted(report, objects), about_frame(shard, report.frame_id, loop))
    elif report.error is not None:
        turn.add(about_frame(_frame_lost(turn, row, report), report.frame_id, loop))
    else:
        committed = _committed(report, metrics)
        turn.add(*_emitted(report, objects), about_frame(committed, report.frame_id, loop))


def _emitted(report: FrameReport, objects: ResultReference | None) -> list[Decided]:
    if objects is None:
        return [Decided(event=emitted) for emitted in report.emitted]
    recorded = BusinessObjectsRecorded(objects_ref=objects, count=len(report.emitted))
    return [Decided(event=recorded)]


def _emitted_count(report: FrameReport) -> int:
    """A worker by frames may have told of events by itself."""
    return len(report.emitted) + report.events_emitted


def _committed(report: FrameReport, metrics: dict[str, Any]) -> FrameCommitted:
    return FrameCommitted(
        worker_id=report.worker_id,
        row_count=report.row_count,
        failed_rows=report.failed_rows,
        broken_rows=report.broken_rows,
        events_emitted=_emitted_count(report),
        output_ref=report.output,
        outcomes=[msgspec.to_builtins(outcome) for outcome in report.outcomes],
        writes=report.writes,
        row_error=report.row_error,
        cursor=report.cursor,
        metrics=metrics,
    )


def _named_cycles(report: FrameReport) -> dict[str, list[str]]:
    """For the ledger; the numbers beside them count all."""
    named = {
        "repeated": report.repeated,
        "adopted": report.adopted,
        "in_doubt": report.in_doubt,
    }
    return {state: [*cycles] for state, cycles in named.items() if cycles}


def abandon_frame(
    turn: Turn, row: FrameRow, *, reclaimer: WorkerId | None, handed_back: bool = False
) -> None:
    """Its holder is gone: the frame waits to be handed out again."""
    gone = _abandoned(turn, row, reclaimer, handed_back=handed_back)
    turn.add(about_frame(gone, row.frame_id, loop_of(turn, row.frame_id)))


def given_up(turn: Turn, work: LoopWork, frame: FrameRow) -> FrameFailed | ShardFailed:
    """It was lost too often."""
    if work.mode == "fanout":
        return shards.given_up(work, frame)
    message = f"frame {frame.ordinal} was lost {frame.attempts} times; its workers went quiet"
    holder = turn.running.holders.of(frame.frame_id)
    return FrameFailed(
        error=Failure(kind="lease_lost", message=message),
        worker_id=None if holder is None else holder.worker_id,
        cursor=frame.cursor,
        attempts=frame.attempts,
        attempts_max=attempts_of(work.policy),
    )


def _frame_lost(turn: Turn, row: FrameRow, report: FrameReport) -> FrameFailed | FrameAbandoned:
    stage = turn.state.stages.get(row.stage_id)
    attempts_max = 1 if stage is None else attempts_of(stage.frame_policy, FRAME_FAILURES_MAX)
    error = report.error or Failure(kind="unknown", message="the frame failed without a word")
    if not is_given_up(turn.state, row, attempts_max) and error.retryable:
        return _abandoned(turn, row)
    return FrameFailed(
        error=error,
        worker_id=row.worker_id,
        row_count=report.row_count,
        output_ref=report.output,
        events_emitted=_emitted_count(report),
        cursor=report.cursor or row.cursor,
        attempts=row.attempts,
        attempts_max=attempts_max,
    )


def _abandoned(
    turn: Turn, row: FrameRow, reclaimer: WorkerId | None = None, *, handed_back: bool = False
) -> FrameAbandoned:
    stage = turn.state.stages.get(row.stage_id)
    policy = {} if stage is None else stage.frame_policy
    return FrameAbandoned(
        previous_owner=row.worker_id or WorkerId(""),
        previous_attempts=row.attempts,
        prior_lease_until=row.lease_until,
        reclaimer=reclaimer,
        handed_back=handed_back,
        attempts_max=attempts_of(policy),
    )
