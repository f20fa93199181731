"""Events as the API shows them: flat rows with the names that clients of the log know."""

from typing import Any

import msgspec

from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.instant import Instant

_APART = frozenset({"step", "status", "result", "error", "duration_ms"})
"""Fields of an event that have a column of their own; the rest is its context."""


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    event_id: str
    event_type: str
    stream_version: int
    position: int
    node_id: str | None = None
    node_name: str | None = None
    status: str | None = None
    created_at: Instant
    timestamp: Instant
    context: dict[str, Any] = {}
    result: dict[str, Any] | None = None
    error: str | None = None
    duration: float | None = None  # seconds
    catalog_id: str | None = None
    parent_event_id: str | None = None
    parent_execution_id: str | None = None
    command_id: str | None = None
    stage_id: str | None = None
    frame_id: str | None = None
    meta: dict[str, Any] = {}


def event_row(recorded: RecordedEvent) -> EventRow:
    envelope = recorded.envelope
    body: dict[str, Any] = msgspec.to_builtins(recorded.event)
    step = body.get("step")
    error = body.get("error")
    milliseconds = body.get("duration_ms")
    return EventRow(
        execution_id=envelope.execution_id,
        event_id=envelope.event_id,
        event_type=envelope.event_type,
        stream_version=envelope.stream_version,
        position=recorded.position,
        node_id=step,
        node_name=step,
        status=_status(body),
        created_at=envelope.event_time,
        timestamp=envelope.event_time,
        context={name: value for name, value in body.items() if name not in _APART},
        result=_result(body),
        error=error["message"] if isinstance(error, dict) else None,
        duration=None if milliseconds is None else milliseconds / 1000,
        catalog_id=envelope.catalog_id,
        parent_event_id=envelope.parent_event_id or envelope.prev_event_id,
        parent_execution_id=envelope.parent_execution_id,
        command_id=envelope.command_id,
        stage_id=envelope.stage_id,
        frame_id=envelope.frame_id,
        meta=envelope.meta,
    )


def _status(body: dict[str, Any]) -> str | None:
    if isinstance(body.get("status"), str):
        return str(body["status"])
    if body.get("error") is not None:
        return "FAILED"
    result = body.get("result")
    return str(result["status"]) if isinstance(result, dict) else None


def _result(body: dict[str, Any]) -> dict[str, Any] | None:
    """A failure is in the result too: that is where runners of playbooks look for it."""
    result: dict[str, Any] | None = body.get("result")
    error = body.get("error")
    if error is None:
        return result
    context = {} if result is None else result.get("context", {})
    return {**(result or {}), "status": "error", "context": {**context, "error": error}}
