"""The shards of a fan-out, as the log tells of them: on their way out, and at their end."""

from noetl.decider.fanout import is_last_try, key_of
from noetl.domain.events import ShardDone, ShardEnqueued, ShardFailed
from noetl.domain.events.values import Failure, Result
from noetl.domain.execution.rows import FrameRow
from noetl.domain.execution.state import LoopWork
from noetl.domain.work import FrameReport
from noetl.kernel.ids import FrameId
from noetl.kernel.instant import Instant
from noetl.runtime.seat import Seat


def enqueued(
    work: LoopWork, row: FrameRow | None, index: int, seat: Seat, lease_until: Instant
) -> ShardEnqueued | None:
    """None: its holder was lost within a try, and that goes on with another one."""
    shard = None if row is None else work.shards.get(row.frame_id)
    if shard is not None and not shard.has_failed:
        return None
    return ShardEnqueued(
        loop_id=work.loop_id,
        shard_id=shard_id(index),
        iter_index=index,
        iter_key=key_of(work, index),
        shard_attempt=1 if shard is None else shard.attempt + 1,
        worker_id=seat.worker.worker_id,
        lease_until=lease_until,
        attempt=1 if row is None else row.attempts + 1,
        incarnation=seat.incarnation,
        parent_frame_id=work.last_frame if row is None else None,
    )


def ended(
    work: LoopWork, report: FrameReport, metrics: dict[str, object]
) -> ShardDone | ShardFailed:
    index, attempt = _place(work, report.frame_id)
    error = report.error or report.row_error
    if error is not None:
        return ShardFailed(
            loop_id=work.loop_id,
            shard_id=shard_id(index),
            error=error,
            final=is_last_try(work, attempt, error),
            shard_attempt=attempt,
            worker_id=report.worker_id,
            events_emitted=len(report.emitted),
            writes=report.writes,
            metrics=metrics,
        )
    return ShardDone(
        loop_id=work.loop_id,
        shard_id=shard_id(index),
        shard_attempt=attempt,
        result=_result(report),
        worker_id=report.worker_id,
        events_emitted=len(report.emitted),
        writes=report.writes,
        metrics=metrics,
    )


def given_up(work: LoopWork, frame: FrameRow) -> ShardFailed:
    index, attempt = _place(work, frame.frame_id)
    message = f"shard {index} was lost {frame.abandoned} times; its workers went quiet"
    return ShardFailed(
        loop_id=work.loop_id,
        shard_id=shard_id(index),
        error=Failure(kind="lease_lost", message=message),
        final=True,
        shard_attempt=attempt,
    )


def is_waiting(work: LoopWork, frame: FrameId) -> bool:
    """It failed and will be tried again: nobody was lost."""
    shard = work.shards.get(frame)
    return shard is not None and shard.has_failed


def shard_id(index: int) -> str:
    return str(index)


def _place(work: LoopWork, frame: FrameId) -> tuple[int, int]:
    """Which row it is, and which try."""
    shard = work.shards.get(frame)
    return work.out[frame].first, 1 if shard is None else shard.attempt


def _result(report: FrameReport) -> Result:
    status = "break" if report.broken_rows else "ok"
    if report.output is not None:
        return Result(status=status, reference=report.output)
    (outcome,) = report.outcomes
    return Result(status=status, context={"value": outcome.value})
