"""How facts about stages and their frames change the state."""

import msgspec

from noetl.domain.events import (
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameHeartbeat,
    FrameStarted,
    StageClosed,
    StageEngine,
    StageOpened,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution import windows
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.losses import handed_back
from noetl.domain.execution.rows import FrameRow, StageRow
from noetl.kernel.ids import FrameId, LoopId, StageId


def opened(fold: Accumulator, event: StageOpened, envelope: Envelope) -> None:
    stage_id = envelope.stage_id or StageId(envelope.aggregate_id)
    if stage_id in fold.state.stages:
        fold.unmatched()
        return
    fold.state.execution.last_node_name = event.step
    fold.state.stages[stage_id] = StageRow(
        stage_id=stage_id,
        stage_kind=event.stage_kind,
        step=event.step,
        visit=event.visit,
        opened_event_id=envelope.event_id,
        loop_id=event.loop_id,
        parent_stage_id=event.parent_stage_id,
        dsl_ref=event.dsl_ref,
        frame_policy=event.frame_policy,
        last_event_id=envelope.event_id,
    )
    work = fold.state.loop_work.get(event.loop_id or LoopId(""))
    if work is not None:
        work.stage_id = stage_id
        work.policy = event.frame_policy


def engaged(fold: Accumulator, event: StageEngine, envelope: Envelope) -> None:
    """What an engine does for a stage changes nothing of what the stage has to show."""
    stage = fold.state.stages.get(envelope.stage_id or StageId(""))
    if stage is None:
        fold.unmatched()
        return
    stage.last_event_id = envelope.event_id
    work = fold.state.loop_work.get(stage.loop_id or LoopId(""))
    if work is not None:
        work.jobs += 1
        work.job = msgspec.to_builtins(event)


def closed(fold: Accumulator, event: StageClosed, envelope: Envelope) -> None:
    row = fold.state.stages.pop(envelope.stage_id or StageId(""), None)
    if row is None:
        fold.unmatched()
        return
    row.status = event.status
    row.closed_event_id = row.last_event_id = envelope.event_id
    row.output_ref = fold.note_reference(event.output_ref)
    row.terminal_version = envelope.stream_version
    fold.retire("stages", row)


def dispatched(fold: Accumulator, event: FrameDispatched, envelope: Envelope) -> None:
    """The first dispatch makes the frame; one after an abandonment hands it out again."""
    frame_id = envelope.frame_id or FrameId(envelope.aggregate_id)
    row = fold.state.frames.get(frame_id)
    if row is None:
        row = fold.state.frames[frame_id] = FrameRow(
            frame_id=frame_id,
            stage_id=envelope.stage_id or StageId(""),
            ordinal=event.ordinal,
            parent_frame_id=event.parent_frame_id,
        )
        stage = stage_of(fold, envelope)
        if stage is not None:
            stage.frame_count += 1
            windows.handed_out(fold.state, stage, frame_id, event)
    elif row.status != "PENDING":
        fold.unmatched()
        return
    else:
        windows.handed_out_again(fold.state, row)
    row.status = "CLAIMED"
    row.command_id = envelope.command_id
    row.worker_id = event.worker_id
    row.lease_until = event.lease_until
    row.attempts = event.attempt
    row.cursor = event.cursor
    row.claimed_event_id = envelope.event_id
    row.started_event_id = None


def started(fold: Accumulator, event: FrameStarted, envelope: Envelope) -> None:
    row = _held(fold, envelope, event.worker_id)
    if row is None:
        fold.unmatched()
        return
    row.status = "RUNNING"
    row.started_event_id = envelope.event_id
    row.lease_until = event.lease_until or row.lease_until
    row.input_ref = fold.note_reference(event.input_ref) or row.input_ref
    row.cursor = event.cursor or row.cursor
    windows.claimed(fold.state, row, event)


def heartbeat(fold: Accumulator, event: FrameHeartbeat, envelope: Envelope) -> None:
    row = _held(fold, envelope, event.worker_id)
    if row is None:
        fold.unmatched()
        return
    row.lease_until = event.lease_until


def abandoned(fold: Accumulator, event: FrameAbandoned, envelope: Envelope) -> None:
    row = _held(fold, envelope, event.previous_owner)
    if row is None:
        fold.unmatched()
        return
    row.status = "PENDING"
    row.worker_id = row.lease_until = None
    row.abandoned += 1
    if event.handed_back:
        handed_back(fold.state, row.frame_id)
    stage = stage_of(fold, envelope)
    if stage is not None:
        stage.frames_abandoned += 1


def committed(fold: Accumulator, event: FrameCommitted, envelope: Envelope) -> None:
    row = close_frame(fold, "COMPLETED", envelope)
    if row is None:
        fold.unmatched()
        return
    row.worker_id = event.worker_id
    row.row_count = event.row_count
    row.rows_failed = event.failed_rows
    row.events_emitted = event.events_emitted
    row.cursor = event.cursor or row.cursor
    row.rows_ref = fold.note_reference(event.output_ref)
    _count_rows(fold, event, envelope)
    windows.came_back(fold.state, row, event)
    fold.retire("frames", row)


def failed(fold: Accumulator, event: FrameFailed, envelope: Envelope) -> None:
    row = close_frame(fold, "FAILED", envelope)
    if row is None:
        fold.unmatched()
        return
    row.error_kind = event.error.kind
    row.row_count = event.row_count
    row.events_emitted = event.events_emitted
    row.cursor = event.cursor or row.cursor
    row.rows_ref = fold.note_reference(event.output_ref)
    stage = stage_of(fold, envelope)
    if stage is not None:
        stage.frames_failed += 1
        stage.events_emitted += event.events_emitted
        windows.was_lost(fold.state, stage, row, event.error)
    fold.retire("frames", row)


def close_frame(fold: Accumulator, status: str, envelope: Envelope) -> FrameRow | None:
    """Take the frame out of the open ones; the caller completes the row and retires it."""
    row = fold.state.frames.pop(envelope.frame_id or FrameId(""), None)
    if row is not None:
        fold.state.handed_back.pop(row.frame_id, None)
        row.status = status
        row.lease_until = None
        row.terminal_event_id = envelope.event_id
        row.terminal_version = envelope.stream_version
    return row


def _count_rows(fold: Accumulator, event: FrameCommitted, envelope: Envelope) -> None:
    stage = stage_of(fold, envelope)
    if stage is None:
        return
    stage.row_count += event.row_count
    stage.rows_failed += event.failed_rows
    stage.events_emitted += event.events_emitted
    loop = None if stage.loop_id is None else fold.state.loops.get(stage.loop_id)
    if loop is not None:
        loop.done += event.row_count - event.failed_rows
        loop.failed += event.failed_rows
        loop.last_event_id = envelope.event_id


def stage_of(fold: Accumulator, envelope: Envelope) -> StageRow | None:
    """The open stage that the event belongs to; from now on this event is its newest."""
    row = fold.state.stages.get(envelope.stage_id or StageId(""))
    if row is not None:
        row.last_event_id = envelope.event_id
    return row


def _held(fold: Accumulator, envelope: Envelope, worker_id: str) -> FrameRow | None:
    """The frame, if this worker holds it: what a fenced worker says changes nothing."""
    row = fold.state.frames.get(envelope.frame_id or FrameId(""))
    return row if row is not None and row.worker_id == worker_id else None


FOLDS: dict[type, FoldFunction] = {
    StageOpened: opened,
    StageEngine: engaged,
    StageClosed: closed,
    FrameDispatched: dispatched,
    FrameStarted: started,
    FrameHeartbeat: heartbeat,
    FrameAbandoned: abandoned,
    FrameCommitted: committed,
    FrameFailed: failed,
}
