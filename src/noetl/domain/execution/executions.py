"""How facts about the whole execution and its steps change the state."""

from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.state import TERMINAL, ExecutionRow, ExecutionStatus, StepState
from noetl.kernel.ids import StepName


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


def completed(fold: Accumulator, event: PlaybookCompleted, envelope: Envelope) -> None:
    if _end(fold, "COMPLETED", envelope) and event.result is not None:
        fold.state.execution.result_ref = fold.note_reference(event.result.reference)


def failed(fold: Accumulator, event: PlaybookFailed, envelope: Envelope) -> None:
    if _end(fold, "FAILED", envelope):
        fold.state.execution.error_kind = event.error.kind
        fold.state.execution.error = event.error.message


def cancelled(fold: Accumulator, event: ExecutionCancelled, envelope: Envelope) -> None:
    if _end(fold, "CANCELLED", envelope):
        fold.state.execution.error = event.reason


def paused(fold: Accumulator, _event: ExecutionPaused, _envelope: Envelope) -> None:
    _move(fold, "PAUSED")


def resumed(fold: Accumulator, _event: ExecutionResumed, _envelope: Envelope) -> None:
    _move(fold, "RUNNING")


def step_entered(fold: Accumulator, event: StepEntered, envelope: Envelope) -> None:
    step = fold.state.steps.get(event.step)
    if step is not None and step.visit >= event.visit:
        fold.unmatched()
        return
    fold.state.execution.last_node_name = event.step
    fold.state.steps[event.step] = StepState(
        visit=event.visit, status="RUNNING", entered_event_id=envelope.event_id
    )


def step_exited(fold: Accumulator, event: StepExited, envelope: Envelope) -> None:
    _leave(fold, event.step, event.visit, event.status, envelope)
    if event.result is not None:
        fold.note_reference(event.result.reference)


def step_skipped(fold: Accumulator, event: StepSkipped, envelope: Envelope) -> None:
    _leave(fold, event.step, event.visit, "SKIPPED", envelope)


def _leave(fold: Accumulator, name: StepName, visit: int, status: str, envelope: Envelope) -> None:
    """A step may end without having been entered: skipped ones never are."""
    step = fold.state.steps.get(name)
    if step is None or step.visit < visit:
        step = fold.state.steps[name] = StepState(visit=visit, status=status)
    elif step.visit > visit or step.exited_event_id is not None:
        fold.unmatched()
        return
    step.status = status
    step.exited_event_id = envelope.event_id
    fold.state.execution.last_node_name = name


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
    StepEntered: step_entered,
    StepExited: step_exited,
    StepSkipped: step_skipped,
}
