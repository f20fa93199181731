"""Events as rows of `noetl.event`, and rows as stored events."""

import re
from datetime import datetime

import asyncpg

from noetl.domain.log import SealedEvent, StoredEvent
from noetl.kernel.canonical_json import encode, encode_recorded
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.wire.checks import is_snowflake
from noetl.wire.columns import query_columns

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

_JSONB = frozenset({"payload_ref", "context", "result", "meta"})
_NUL = b"\\u0000"  # as JSON writes the one character that PostgreSQL's text cannot hold
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # not a backslash followed by u0000
_INSTANT_DIGITS = 26


def number(text: str | None) -> int | None:
    """A snowflake as a bigint column holds it, or None for text that would not read back."""
    return int(text) if text and is_snowflake(text) else None


def instant(moment: datetime) -> Instant:
    """From the driver, which always speaks UTC."""
    return Instant(f"{moment.isoformat(timespec='microseconds')[:_INSTANT_DIGITS]}Z")


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
