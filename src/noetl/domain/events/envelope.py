"""The frame around every event: who, where in the stream, caused by what, proved by which bytes."""

from typing import Any

import msgspec

from noetl.domain.events import Event
from noetl.domain.payload import PayloadReference
from noetl.kernel.ids import CommandId, EventId, ExecutionId, FrameId, StageId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the checksum covers, apart from the event's own body.

    JSON has no cycles, so the collector need not look at envelopes: they are made by the million.
    """

    event_id: EventId
    event_type: str
    schema_name: str
    schema_version: int
    tenant_id: str
    organization_id: str
    execution_id: ExecutionId
    stream_id: str
    stream_version: int
    prev_event_id: EventId | None = None  # None only for the first event of a stream
    aggregate_type: str
    aggregate_id: str
    event_time: Instant
    producer: str
    causation_id: EventId | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None
    payload_ref: PayloadReference | None = None
    stage_id: StageId | None = None
    frame_id: FrameId | None = None
    command_id: CommandId | None = None
    catalog_id: str | None = None
    parent_event_id: EventId | None = None
    parent_execution_id: ExecutionId | None = None
    meta: dict[str, Any] = {}

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant_id, self.organization_id)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What all events of one execution share, whoever writes them."""

    scope: Scope
    execution_id: ExecutionId
    producer: str  # the locator of the process that speaks
    catalog_id: str | None = None
    parent_execution_id: ExecutionId | None = None
    correlation_id: str | None = None


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An event that has happened and has no place in the log yet."""

    event_id: EventId
    event: Event
    event_time: Instant
    event_type: str | None = None  # a business object's own name for what happened
    causation_id: EventId | None = None
    parent_event_id: EventId | None = None
    idempotency_key: str | None = None
    payload_ref: PayloadReference | None = None
    stage_id: StageId | None = None
    frame_id: FrameId | None = None
    command_id: CommandId | None = None
    meta: dict[str, Any] = {}
    annotations: dict[str, Any] = {}  # `locality`, `worker_locator`: kept, never checksummed


class RecordedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event read back from the log, lifted to this build's version of its type."""

    envelope: Envelope
    event: Event
    position: int
    ingest_time: Instant
    annotations: dict[str, Any] = {}
