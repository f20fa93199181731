"""events -> state. Pure and total: same events, same state, on any machine.

The coordinator, the projector, replay and Spark run this same function.
"""

from collections.abc import Iterable

from noetl.domain.events import (
    BatchAccepted,
    BatchCompleted,
    BatchFailed,
    BatchProcessing,
    BusinessObjectChanged,
    CheckpointCommitted,
    Event,
    UnknownEvent,
    WorkerCapacity,
)
from noetl.domain.events.envelope import Envelope, RecordedEvent
from noetl.domain.execution import (
    business_objects,
    chunks,
    commands,
    executions,
    frames,
    loops,
    steps,
)
from noetl.domain.execution.accumulator import Accumulator, FoldFunction, RowSink, drop_row
from noetl.domain.execution.state import ExecutionState

FOLD_VERSION = 4
"""Raised by hand whenever the same events would give another state."""


def _only_counted(_fold: Accumulator, _event: Event, _envelope: Envelope) -> None:
    """Facts about our own services: part of the history, not of any state."""


FOLDS: dict[type, FoldFunction] = {
    **executions.FOLDS,
    **steps.FOLDS,
    **commands.FOLDS,
    **chunks.FOLDS,
    **loops.FOLDS,
    **frames.FOLDS,
    **business_objects.FOLDS,
    BatchAccepted: _only_counted,
    BatchProcessing: _only_counted,
    BatchCompleted: _only_counted,
    BatchFailed: _only_counted,
    CheckpointCommitted: _only_counted,
    WorkerCapacity: _only_counted,
}


def fold(
    events: Iterable[RecordedEvent], state: ExecutionState | None = None, sink: RowSink = drop_row
) -> ExecutionState:
    """Apply the events in order. A state that is passed in is changed in place and returned."""
    accumulator = Accumulator(ExecutionState() if state is None else state, sink)
    for recorded in events:
        evolve(accumulator, recorded.envelope, recorded.event)
    return accumulator.state


def evolve(accumulator: Accumulator, envelope: Envelope, event: Event) -> None:
    """Apply one event. Never refuses: the log already accepted it."""
    state = accumulator.state
    row = state.execution
    if row.event_count == 0:
        row.execution_id = envelope.execution_id
        row.tenant_id = envelope.tenant_id
        row.organization_id = envelope.organization_id
    row.event_count += 1
    row.last_event_id = envelope.event_id
    row.last_event_type = envelope.event_type
    state.stream_version = envelope.stream_version
    state.now = envelope.event_time
    if type(event) is UnknownEvent:
        row.unknown_events += 1
        return
    if envelope.payload_ref is not None and type(event) is not BusinessObjectChanged:
        accumulator.note_reference(envelope.payload_ref)
    FOLDS[type(event)](accumulator, event, envelope)
