"""How facts about loops, fan-outs and their shards change the state."""

from noetl.domain.events import (
    FaninCompleted,
    FanoutStarted,
    LoopDone,
    LoopStarted,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution import shards
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.frames import close_frame, stage_of
from noetl.domain.execution.names import all_assigned
from noetl.domain.execution.rows import FrameRow, LoopRow
from noetl.domain.execution.state import LoopWork, StepOutcome
from noetl.domain.execution.steps import work_ended
from noetl.domain.execution.windows import rows_of, taken_up
from noetl.kernel.ids import FrameId, LoopId


def started(fold: Accumulator, event: LoopStarted, envelope: Envelope) -> None:
    if event.loop_id in fold.state.loops:
        fold.unmatched()
        return
    fold.state.loops[event.loop_id] = LoopRow(
        loop_id=event.loop_id,
        step=event.step,
        visit=event.visit,
        mode=event.mode,
        started_event_id=envelope.event_id,
        total=event.collection_size,
        collection_ref=fold.note_reference(event.collection_ref),
        last_event_id=envelope.event_id,
    )
    work = fold.state.loop_work[event.loop_id] = LoopWork(
        loop_id=event.loop_id,
        step=event.step,
        visit=event.visit,
        mode=event.mode,
        total=event.collection_size or 0,
        attempt=event.attempt,
        collection=event.collection,
        collection_ref=event.collection_ref,
    )
    before = fold.state.kept_loops.pop(event.step, None)
    if before is not None and event.attempt > 1:  # a person's retry of the visit
        taken_up(work, before)
        fold.state.loops[event.loop_id].done = rows_of(work.outputs) - work.rows_failed


def fanout_started(fold: Accumulator, event: FanoutStarted, envelope: Envelope) -> None:
    """Follows `loop.started`, or stands alone when the fan-out is the whole loop."""
    row = fold.state.loops.get(event.loop_id)
    if row is None:
        row = fold.state.loops[event.loop_id] = LoopRow(
            loop_id=event.loop_id,
            step=event.step,
            visit=event.visit,
            mode="fanout",
            started_event_id=envelope.event_id,
        )
    row.total = event.total_shards
    row.last_event_id = envelope.event_id


def shard_enqueued(fold: Accumulator, event: ShardEnqueued, envelope: Envelope) -> None:
    """A shard is a frame of one row; a retry is the same frame at a higher attempt."""
    if _loop(fold, event.loop_id, envelope) is None:
        fold.unmatched()
        return
    if envelope.frame_id is None or envelope.stage_id is None:
        return
    frame = fold.state.frames.get(envelope.frame_id)
    if frame is None:
        frame = fold.state.frames[envelope.frame_id] = FrameRow(
            frame_id=envelope.frame_id,
            stage_id=envelope.stage_id,
            ordinal=event.iter_index,
            parent_frame_id=event.parent_frame_id,
        )
        stage = stage_of(fold, envelope)
        if stage is not None:
            stage.frame_count += 1
    frame.attempts = event.attempt or event.shard_attempt
    frame.claimed_event_id = envelope.event_id
    if event.worker_id is not None:
        frame.status = "RUNNING"
        frame.worker_id, frame.lease_until = event.worker_id, event.lease_until
        frame.started_event_id = envelope.event_id
    work = fold.state.loop_work.get(event.loop_id)
    if work is not None:
        shards.enqueued(work, envelope.frame_id, event)


def shard_done(fold: Accumulator, event: ShardDone, envelope: Envelope) -> None:
    row = _loop(fold, event.loop_id, envelope)
    if row is None or _is_over(fold, envelope):
        fold.unmatched()
        return
    row.done += 1
    rows_ref = None if event.result is None else fold.note_reference(event.result.reference)
    frame = close_frame(fold, "COMPLETED", envelope)
    if frame is not None:
        frame.row_count = 1
        frame.rows_ref = rows_ref
        frame.events_emitted += event.events_emitted
        stage = stage_of(fold, envelope)
        if stage is not None:
            stage.row_count += 1
            stage.events_emitted += event.events_emitted
        work = fold.state.loop_work.get(event.loop_id)
        if work is not None:
            shards.done(work, frame.frame_id, event)
        fold.retire("frames", frame)


def shard_failed(fold: Accumulator, event: ShardFailed, envelope: Envelope) -> None:
    row = _loop(fold, event.loop_id, envelope)
    if row is None or _is_over(fold, envelope):
        fold.unmatched()
        return
    work = fold.state.loop_work.get(event.loop_id)
    if work is not None and envelope.frame_id is not None:
        shards.failed(work, envelope.frame_id, event)
    if not event.final:  # it will be enqueued again: not a failure of the loop yet
        _let_go(fold, event, envelope)
        return
    row.failed += 1
    frame = close_frame(fold, "FAILED", envelope)
    if frame is not None:
        frame.error_kind = event.error.kind
        frame.events_emitted += event.events_emitted
        stage = stage_of(fold, envelope)
        if stage is not None:
            stage.frames_failed += 1
            stage.events_emitted += event.events_emitted
        fold.retire("frames", frame)


def _let_go(fold: Accumulator, event: ShardFailed, envelope: Envelope) -> None:
    """The shard waits for its next holder."""
    frame = fold.state.frames.get(envelope.frame_id or FrameId(""))
    if frame is None:
        return
    frame.status = "PENDING"
    frame.worker_id = frame.lease_until = None
    frame.events_emitted += event.events_emitted
    stage = fold.state.stages.get(frame.stage_id)
    if stage is not None:
        stage.events_emitted += event.events_emitted


def fanin_completed(fold: Accumulator, event: FaninCompleted, envelope: Envelope) -> None:
    row = _loop(fold, event.loop_id, envelope)
    if row is None:
        fold.unmatched()
        return
    row.fanin_status = event.status
    row.total, row.done, row.failed = event.total, event.done, event.failed


def done(fold: Accumulator, event: LoopDone, envelope: Envelope) -> None:
    row = fold.state.loops.pop(event.loop_id, None)
    if row is None:
        fold.unmatched()
        return
    row.total = event.stats.total
    row.failed = event.stats.failed
    row.done = event.stats.total - event.stats.failed
    row.completed = True
    row.status = event.status
    row.last_event_id = envelope.event_id
    row.terminal_version = envelope.stream_version
    fold.state.execution.last_node_name = event.step
    if event.result is not None:
        fold.note_reference(event.result.reference)
    work = fold.state.loop_work.pop(event.loop_id, None)
    if work is not None and work.stage_id is not None and _may_be_tried_again(work, event):
        work.has_dataset = work.has_dataset or event.error is None
        fold.state.kept_loops[event.step] = work
    fold.state.ctx = all_assigned(fold.state.ctx, event.writes)
    ended = StepOutcome(result=event.result, error=event.error, loop_length=event.stats.total)
    work_ended(fold, event.step, event.visit, ended)
    fold.retire("loops", row)


def _may_be_tried_again(work: LoopWork, event: LoopDone) -> bool:
    """It failed, or some rows did and the author let them; those of a cursor are the cursor's."""
    return event.error is not None or (work.rows_failed > 0 and work.mode != "cursor")


def _is_over(fold: Accumulator, envelope: Envelope) -> bool:
    """A shard that has a frame ends with it: a second end must not count again."""
    has_frame = envelope.frame_id is not None and envelope.stage_id is not None
    return has_frame and envelope.frame_id not in fold.state.frames


def _loop(fold: Accumulator, loop_id: LoopId, envelope: Envelope) -> LoopRow | None:
    row = fold.state.loops.get(loop_id)
    if row is not None:
        row.last_event_id = envelope.event_id
    return row


FOLDS: dict[type, FoldFunction] = {
    LoopStarted: started,
    FanoutStarted: fanout_started,
    ShardEnqueued: shard_enqueued,
    ShardDone: shard_done,
    ShardFailed: shard_failed,
    FaninCompleted: fanin_completed,
    LoopDone: done,
}
