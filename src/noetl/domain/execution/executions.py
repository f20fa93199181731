"""How facts about the whole execution change the state."""

from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.rows import TERMINAL, ExecutionRow, ExecutionStatus
from noetl.domain.execution.state import RunState


def initialized(fold: Accumulator, event: PlaybookInitialized, envelope: Envelope) -> None:
    row = fold.state.execution
    if row.started_at is not None or row.status in TERMINAL:
        fold.unmatched()
        return
    row.status = "RUNNING"
    row.path = event.path
    row.playbook_version = event.playbook_version
    row.playbook_digest = event.playbook_digest
    row.parent_execution_id = event.parent_execution_id
    row.started_at = envelope.event_time
    fold.state.run = RunState(
        workload=event.workload,
        payload=event.payload,
        env=event.env,
        job_uuid=event.job_uuid or "",
        catalog_id=envelope.catalog_id,
        parent_stage_id=event.parent_stage_id,
    )


def completed(fold: Accumulator, event: PlaybookCompleted, envelope: Envelope) -> None:
    if _end(fold, "COMPLETED", envelope) and event.result is not None:
        fold.state.execution.result_ref = fold.note_reference(event.result.reference)


def failed(fold: Accumulator, event: PlaybookFailed, envelope: Envelope) -> None:
    if _end(fold, "FAILED", envelope):
        fold.state.execution.error_kind = event.error.kind
        fold.state.execution.error = event.error.message


def cancelled(fold: Accumulator, event: ExecutionCancelled, envelope: Envelope) -> None:
    if not _end(fold, "CANCELLED", envelope):
        return
    fold.state.execution.error = event.reason
    for name in fold.state.open_steps:
        fold.state.steps[name].status = "CANCELLED"
        fold.state.steps[name].exited_event_id = envelope.event_id
    fold.state.open_steps.clear()  # tokens stay: what had not begun begins when it is retried
    fold.state.loop_work.clear()  # a retry begins a loop anew: its old rows must not go out again


def paused(fold: Accumulator, _event: ExecutionPaused, _envelope: Envelope) -> None:
    _move(fold, "PAUSED")


def resumed(fold: Accumulator, _event: ExecutionResumed, _envelope: Envelope) -> None:
    _move(fold, "RUNNING")


def retried(fold: Accumulator, event: ExecutionRetried, _envelope: Envelope) -> None:
    """The visit that failed goes on at a higher try; any other step gets a token to start anew."""
    row = fold.state.execution
    if row.status not in TERMINAL and not event.also:
        fold.unmatched()
        return
    row.status = "RUNNING"
    row.ended_at = row.terminal_event_id = row.result_ref = row.error = row.error_kind = None
    fold.state.failed = fold.state.ended_in = None
    step = fold.state.steps.get(event.step)
    if step is None or step.visit != event.visit:
        fold.state.tokens.setdefault(event.step, [event.step])  # unless one waits there already
        return
    step.status = "RUNNING"
    step.attempt = event.attempt
    step.exited_event_id = step.outcome = None
    step.is_unhandled = False
    if event.step not in fold.state.open_steps:
        fold.state.open_steps.append(event.step)


def _move(fold: Accumulator, status: ExecutionStatus) -> None:
    if fold.state.execution.status in TERMINAL:
        fold.unmatched()
        return
    fold.state.execution.status = status


def _end(fold: Accumulator, status: ExecutionStatus, envelope: Envelope) -> bool:
    """The first terminal event wins; what comes later cannot take it back."""
    row: ExecutionRow = fold.state.execution
    if row.status in TERMINAL:
        fold.unmatched()
        return False
    row.status = status
    row.ended_at = envelope.event_time
    row.terminal_event_id = envelope.event_id
    return True


FOLDS: dict[type, FoldFunction] = {
    PlaybookInitialized: initialized,
    PlaybookCompleted: completed,
    PlaybookFailed: failed,
    ExecutionCancelled: cancelled,
    ExecutionPaused: paused,
    ExecutionResumed: resumed,
    ExecutionRetried: retried,
}
