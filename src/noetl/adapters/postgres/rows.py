"""Events as rows of `noetl.event`, and rows as stored events."""

import re
from datetime import datetime

import asyncpg

from noetl.domain.log import Append, SealedEvent, StoredEvent
from noetl.kernel.canonical_json import encode, encode_recorded
from noetl.kernel.errors import ChainBroken, LogError
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.wire.columns import query_columns, unique_fact

Row = tuple[object, ...]

COLUMNS = (
    "execution_id",
    "stream_version",
    "event_id",
    "prev_event_id",
    "parent_event_id",
    "parent_execution_id",
    "causation_id",
    "catalog_id",
    "stage_id",
    "frame_id",
    "event_time",
    "duration",
    "schema_version",
    "schema_name",
    "event_type",
    "node_name",
    "status",
    "error",
    "worker_id",
    "command_id",
    "tenant_id",
    "organization_id",
    "aggregate_type",
    "aggregate_id",
    "producer",
    "correlation_id",
    "idempotency_key",
    "payload_ref",
    "context",
    "result",
    "meta",
    "annotations",
    "envelope_checksum",
    "canonical",
)
"""What a writer sends of an event: the attributes of the type `noetl.event_row`, in its order."""

STORED_COLUMNS = (
    "execution_id, stream_version, position, ingest_time, canonical, envelope_checksum, annotations"
)

IDENTIFIER_CHARACTERS_MAX = 600
"""Of what is indexed: an entry of a PostgreSQL index has at most 2,704 bytes."""

_JSONB = frozenset({"payload_ref", "context", "result", "meta"})
_NUL = b"\\u0000"  # as JSON writes the one character that PostgreSQL's text cannot hold
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # not a backslash followed by u0000
_ID_MAX = 2**63 - 1
_INSTANT_DIGITS = 26


def number(text: str | None) -> int | None:
    """A snowflake as a bigint column holds it, or None for text that would not read back."""
    if not text or not (text.isascii() and text.isdigit()) or (text[0] == "0" != text):
        return None
    value = int(text)
    return value if value <= _ID_MAX else None


def instant(moment: datetime) -> Instant:
    """From the driver, which always speaks UTC."""
    return Instant(f"{moment.isoformat(timespec='microseconds')[:_INSTANT_DIGITS]}Z")


def unfit(append: Append) -> LogError | None:
    """Why an append that any other log might take cannot be a set of rows."""
    if number(append.execution_id) is None:
        return ChainBroken(append.stream, "its id is not a 64-bit snowflake")
    if any("\0" in name for name in append.scope):
        return ChainBroken(append.stream, "its tenant or organization holds a NUL character")
    for sealed in append.events:
        if number(sealed.envelope.event_id) is None:
            reason = f"event {sealed.envelope.event_id} has an id that is not a 64-bit snowflake"
            return ChainBroken(append.stream, reason)
        # Everything is in the canonical bytes, so most events need no closer look.
        if len(sealed.canonical) > IDENTIFIER_CHARACTERS_MAX or _NUL in sealed.canonical:
            for name in (sealed.envelope.idempotency_key, unique_fact(sealed)):
                if name and (len(name) > IDENTIFIER_CHARACTERS_MAX or "\0" in name):
                    reason = f"{name[:40]!r}… is no identifier: it has a NUL character or more than"
                    return ChainBroken(append.stream, f"{reason} {IDENTIFIER_CHARACTERS_MAX}")
    return None


def row_of(sealed: SealedEvent, execution: int) -> Row:
    """Everything about an event but its place in the log, which the insert adds."""
    envelope = sealed.envelope
    columns = query_columns(sealed)
    payload_ref, annotations, duration = (
        envelope.payload_ref,
        sealed.annotations,
        columns.duration_ms,
    )
    row = (
        execution,
        envelope.stream_version,
        int(envelope.event_id),
        # A call for each of these, most of them None, would be a tenth of the time of an append.
        envelope.prev_event_id and number(envelope.prev_event_id),
        envelope.parent_event_id and number(envelope.parent_event_id),
        envelope.parent_execution_id and number(envelope.parent_execution_id),
        envelope.causation_id and number(envelope.causation_id),
        envelope.catalog_id and number(envelope.catalog_id),
        envelope.stage_id and number(envelope.stage_id),
        envelope.frame_id and number(envelope.frame_id),
        datetime.fromisoformat(envelope.event_time),
        None if duration is None else duration / 1000,
        envelope.schema_version,
        envelope.schema_name,
        envelope.event_type,
        columns.node_name,
        columns.status,
        columns.error,
        columns.worker_id,
        envelope.command_id,
        envelope.tenant_id,
        envelope.organization_id,
        envelope.aggregate_type,
        envelope.aggregate_id,
        envelope.producer,
        envelope.correlation_id,
        envelope.idempotency_key,
        payload_ref and encode_recorded(payload_ref).decode(),
        columns.context and columns.context.decode(),
        columns.result and columns.result.decode(),
        columns.meta and columns.meta.decode(),
        encode(annotations).decode() if annotations else None,
        sealed.checksum,
        sealed.canonical,
    )
    holds_nul = _NUL in sealed.canonical or (annotations and _NUL in (columns.meta or b""))
    return _without_nul(row) if holds_nul else row


def stored(row: asyncpg.Record) -> StoredEvent:
    execution, version, position, ingest_time, canonical, checksum, annotations = row
    return StoredEvent(
        ExecutionId(str(execution)),
        version,
        position,
        instant(ingest_time),
        canonical,
        checksum,
        None if annotations is None else annotations.encode(),
    )


def shown_text(text: str) -> str:
    """As a copy for SQL may hold it. What the canonical bytes say is not touched."""
    return text.replace("\0", "\ufffd")


def shown_json(text: str) -> str:
    """The same for the text of a JSON value, where a NUL is written as an escape."""
    return _ESCAPED_NUL.sub(r"\1\\ufffd", text) if "\\u0000" in text else text


def _without_nul(row: Row) -> Row:
    return tuple(
        (shown_json if name in _JSONB else shown_text)(value) if isinstance(value, str) else value
        for name, value in zip(COLUMNS, row, strict=True)
    )
