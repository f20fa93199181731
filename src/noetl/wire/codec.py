"""Bytes <-> events. The only module that knows what an event looks like at rest.

At rest an event is the `c1` JSON of its envelope with its body under `body`. Sealing decodes what
it encoded and compares: whatever the log accepts is certain to read back equal.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.domain.events import (
    BUSINESS_OBJECT,
    CATALOGUE,
    EVENT_CLASSES,
    BusinessObjectChanged,
    Event,
    UnknownEvent,
)
from noetl.domain.events.envelope import Draft, Envelope, RecordedEvent, Source
from noetl.domain.log import SealedEvent, StoredEvent, StreamHead
from noetl.kernel import canonical_json
from noetl.kernel.errors import (
    EventCorrupt,
    EventTooLarge,
    EventUnreadable,
    FieldInvalid,
)
from noetl.kernel.ids import EventId, stream_id
from noetl.kernel.instant import Instant
from noetl.wire.aggregates import SCHEMA_NAMES, aggregate_of
from noetl.wire.checks import (
    check_draft,
    check_names,
    check_source,
    looks_deep,
    name_the_fault,
)
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import UpcasterRegistry

EVENT_BYTES_MAX = 256 * 1024
"""Room for an inline result of 100 KiB and its envelope, and a stop for everything else."""


class _AtRest(Envelope, frozen=True, kw_only=True, omit_defaults=True):
    """The envelope and its body, as one flat JSON object."""

    body: Any


class _Unopened(Envelope, frozen=True, kw_only=True):
    """The same, with the body left as bytes until its type is known."""

    body: msgspec.Raw


_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What the decoders raise on damaged bytes."""

_UNOPENED = msgspec.json.Decoder(_Unopened)
_PLAIN = msgspec.json.Decoder(dict[str, Any])
_WHOLE: dict[type[Event], msgspec.json.Decoder[Any]] = {
    cls: msgspec.json.Decoder(
        msgspec.defstruct(f"Whole{cls.__name__}", [("body", cls)], bases=(Envelope,), kw_only=True)
    )
    for cls in EVENT_CLASSES
}
_BODIES: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(cls) for name, cls in CATALOGUE.items()
}


class Sealer:
    """Seals events of one source; what they have in common is checked and made once."""

    def __init__(self, source: Source) -> None:
        check_source(source)
        self._shared = _shared_fields(source)

    def seal(self, drafts: Sequence[Draft], head: StreamHead) -> tuple[SealedEvent, ...]:
        """Give the drafts their places after `head`. Refuses anything the log must not hold."""
        sealed = []
        version, previous = head.version, head.last_event_id
        for draft in drafts:
            version += 1
            sealed.append(_seal_one(draft, _place(draft, self._shared, version, previous)))
            previous = draft.event_id
        return tuple(sealed)


def seal(drafts: Sequence[Draft], head: StreamHead, source: Source) -> tuple[SealedEvent, ...]:
    return Sealer(source).seal(drafts, head)


def open_stored(
    stored: StoredEvent, registry: UpcasterRegistry = RELEASED, *, verify: bool = True
) -> RecordedEvent:
    """The event in a row of the log, checked against its checksum and lifted to this build."""
    name = (stored.execution_id, stored.stream_version)
    if verify and (actual := canonical_json.sha256_hex(stored.canonical)) != stored.checksum:
        raise EventCorrupt("{}@{}".format(*name), recorded=stored.checksum, actual=actual)
    try:
        envelope = _UNOPENED.decode(stored.canonical)
        annotations = _PLAIN.decode(stored.annotations) if stored.annotations else {}
    except _UNDECODABLE as error:
        raise EventUnreadable("{}@{}".format(*name), str(error)) from error
    if (envelope.execution_id, envelope.stream_version) != name:
        raise EventUnreadable("{}@{}".format(*name), "its bytes are those of another event")
    event = _open_body(envelope, registry)
    return RecordedEvent(envelope, event, stored.position, stored.ingest_time, annotations)


def _seal_one(draft: Draft, at_rest: _AtRest) -> SealedEvent:
    try:
        canonical = canonical_json.encode_recorded(at_rest)
        again = _WHOLE[type(draft.event)].decode(canonical)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        name_the_fault(draft.event, draft.meta)
        raise FieldInvalid(at_rest.event_type, str(error)) from error
    # How deep a decoder can go depends on who calls it, so depth has a limit of its own.
    if looks_deep(again.body, again.meta):
        name_the_fault(again.body, again.meta)
    # NaN, tuples, dates and the like do not read back equal, so one comparison finds them all.
    if again.body != draft.event or again.meta != draft.meta:
        name_the_fault(draft.event, draft.meta)
        raise FieldInvalid(at_rest.event_type, "a value would not read back equal")
    if len(canonical) > EVENT_BYTES_MAX:
        raise EventTooLarge(
            at_rest.event_type, size_bytes=len(canonical), size_bytes_max=EVENT_BYTES_MAX
        )
    checksum = canonical_json.sha256_hex(canonical)
    return SealedEvent(at_rest, draft.event, canonical, checksum, draft.annotations)


def _shared_fields(source: Source) -> _AtRest:
    """An envelope with what all events of the source have in common; the rest is filled in."""
    return _AtRest(
        event_id=EventId(""),
        event_type="",
        schema_name="",
        schema_version=0,
        tenant_id=source.scope.tenant_id,
        organization_id=source.scope.organization_id,
        execution_id=source.execution_id,
        stream_id=stream_id(source.execution_id),
        stream_version=0,
        aggregate_type="",
        aggregate_id="",
        event_time=Instant(""),
        producer=source.producer,
        correlation_id=source.correlation_id,
        catalog_id=source.catalog_id,
        parent_execution_id=source.parent_execution_id,
        body=None,
    )


def _place(draft: Draft, shared: _AtRest, version: int, previous: EventId | None) -> _AtRest:
    check_draft(draft)
    event = draft.event
    aggregate_type, aggregate_id = aggregate_of(draft, shared.execution_id)
    check_names(draft, aggregate_id)
    return msgspec.structs.replace(
        shared,
        event_id=draft.event_id,
        event_type=draft.event_type or event.TYPE,
        schema_name=SCHEMA_NAMES[event.TYPE],
        schema_version=event.VERSION,
        stream_version=version,
        prev_event_id=previous,
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        event_time=draft.event_time,
        causation_id=draft.causation_id,
        idempotency_key=draft.idempotency_key,
        payload_ref=draft.payload_ref,
        stage_id=draft.stage_id,
        frame_id=draft.frame_id,
        command_id=draft.command_id,
        parent_event_id=draft.parent_event_id,
        meta=draft.meta,
        body=event,
    )


def _open_body(envelope: _Unopened, registry: UpcasterRegistry) -> Event:
    if envelope.aggregate_type == BUSINESS_OBJECT:
        cls: type[Event] | None = BusinessObjectChanged
    else:
        cls = CATALOGUE.get(envelope.event_type)
    try:
        if cls is None:
            return UnknownEvent(_PLAIN.decode(envelope.body))
        if envelope.schema_version == cls.VERSION:
            event: Event = _BODIES[cls.TYPE].decode(envelope.body)
            return event
        return _lift(envelope, cls, registry)
    except _UNDECODABLE as error:
        raise EventUnreadable(envelope.event_id, f"{envelope.event_type}: {error}") from error


def _lift(envelope: _Unopened, cls: type[Event], registry: UpcasterRegistry) -> Event:
    body = _PLAIN.decode(envelope.body)
    reached, body = registry.lift(envelope.schema_name, envelope.schema_version, body)
    if reached != cls.VERSION:
        raise EventUnreadable(
            envelope.event_id,
            f"{envelope.schema_name} is at version {reached}, this build reads {cls.VERSION};"
            " upgrade noetl or register the missing upcaster",
        )
    return msgspec.convert(body, cls)
