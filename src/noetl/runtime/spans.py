"""Spans of executions and steps, from their events.

Begin and end are in the log, so whoever records the end tells the whole span: also after a crash.
"""

from collections.abc import Sequence

from noetl.domain.events import ExecutionCancelled, PlaybookCompleted, PlaybookFailed, StepExited
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId
from noetl.kernel.snowflake import minted_at
from noetl.ports.telemetry import EXECUTION, SpanPlace, Telemetry, step_key
from noetl.runtime.coordinator import Coordinator

_ENDS = (PlaybookCompleted, PlaybookFailed, ExecutionCancelled)


class ExecutionSpans:
    def __init__(self, coordinator: Coordinator, telemetry: Telemetry) -> None:
        self._coordinator = coordinator
        self._telemetry = telemetry

    def hear(self, execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        """A listener of the coordinator."""
        running = self._coordinator.running.get(execution)
        if running is None:
            return
        for sealed in events:
            if isinstance(sealed.event, StepExited):
                self._step(execution, running.state, sealed, sealed.event)
            elif isinstance(sealed.event, _ENDS):
                self._execution(execution, running.state, sealed)

    def _step(
        self, execution: ExecutionId, state: ExecutionState, sealed: SealedEvent, event: StepExited
    ) -> None:
        known = state.steps.get(event.step)
        if known is None or known.entered_event_id is None or known.visit != event.visit:
            return  # a later visit has begun in the same turn: its own end tells it
        key = step_key(event.step, event.visit)
        entered = minted_at(known.entered_event_id)  # to the millisecond, so perhaps a bit early
        self._telemetry.past(
            SpanPlace("step", f"step {event.step}", execution, key, EXECUTION),
            max(entered, state.execution.started_at or entered),
            sealed.envelope.event_time,
            {"noetl.step": event.step, "noetl.visit": event.visit, "noetl.status": event.status},
            None if event.error is None else event.error.kind,
        )

    def _execution(
        self, execution: ExecutionId, state: ExecutionState, sealed: SealedEvent
    ) -> None:
        row, event = state.execution, sealed.event
        self._telemetry.past(
            SpanPlace("execution", f"execution {row.path or ''}".rstrip(), execution, EXECUTION),
            row.started_at or minted_at(execution),
            sealed.envelope.event_time,
            {
                "noetl.path": row.path,
                "noetl.status": row.status,
                "noetl.parent_execution_id": row.parent_execution_id,
            },
            event.error.kind if isinstance(event, PlaybookFailed) else None,
        )
