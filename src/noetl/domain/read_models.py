"""Rows of a fold as records of read models: their type, their id, and when they are new."""

from typing import Any

import msgspec

from noetl.domain.events import PlaybookInitialized
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.fold import FOLD_VERSION
from noetl.domain.execution.rows import Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.projection import ProjectionRecord
from noetl.domain.surfaces import ID_FIELDS, Row, plain
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId, object_key
from noetl.kernel.instant import Instant, to_datetime
from noetl.kernel.scope import Scope

PROJECTION_TYPES: dict[Surface, str] = {
    "execution": "execution",
    "stages": "stage",
    "frames": "frame",
    "commands": "command",
    "business_objects": "business_object",
    "loops": "loop",
}

SCOPES = "scope"
NO_TENANT = Scope("", "")
"""Where the read models keep which scopes there are; nobody's own scope is named so."""

START_KEYS = "start_key"


class SourcePlace(msgspec.Struct, frozen=True):
    """Which part of the log a record reflects."""

    scope: Scope
    version: int
    position: int
    event_id: EventId
    meta: dict[str, Any] = {}


def record_of(
    surface: Surface, row: msgspec.Struct, state: ExecutionState, place: SourcePlace
) -> ProjectionRecord:
    execution = state.execution.execution_id
    canonical = canonical_json.encode_recorded(row)
    return ProjectionRecord(
        scope=place.scope,
        projection_type=PROJECTION_TYPES[surface],
        projection_id=projection_id(surface, plain(row), execution),
        execution_id=execution,
        version=place.version,
        position=place.position,
        source_event_id=place.event_id,
        canonical=canonical,
        checksum=canonical_json.sha256_hex(canonical),
        meta=place.meta,
    )


def write_meta(
    state: ExecutionState, place: SourcePlace, ingested_at: Instant, projected_at: Instant
) -> dict[str, Any]:
    """Of which events a record was made, by which fold, when, and how far behind the log."""
    behind = to_datetime(projected_at) - to_datetime(ingested_at)
    return {
        "event_count": state.execution.event_count,
        "source_event_id": place.event_id,
        "position": place.position,
        "event_time_watermark": state.now,
        "fold_version": FOLD_VERSION,
        "projected_at": projected_at,
        "projection_lag_ms": max(0, round(behind.total_seconds() * 1_000)),
    }


def scope_record(first: ProjectionRecord) -> ProjectionRecord:
    """That a scope has executions here, known from any record of it."""
    canonical = canonical_json.encode_recorded(first.scope._asdict())
    return msgspec.structs.replace(
        first,
        scope=NO_TENANT,
        projection_type=SCOPES,
        projection_id="/".join(first.scope),
        version=first.position,
        canonical=canonical,
        checksum=canonical_json.sha256_hex(canonical),
    )


def start_key_record(first: RecordedEvent, position: int) -> ProjectionRecord | None:
    """Which execution was started under a key, and when; None when it was started without one."""
    event, envelope = first.event, first.envelope
    if not isinstance(event, PlaybookInitialized) or event.start_key is None:
        return None
    started = {"execution_id": envelope.execution_id, "started_at": envelope.event_time}
    canonical = canonical_json.encode_recorded(started)
    return ProjectionRecord(
        scope=envelope.scope,
        projection_type=START_KEYS,
        projection_id=event.start_key,
        execution_id=envelope.execution_id,
        version=position,
        position=position,
        source_event_id=envelope.event_id,
        canonical=canonical,
        checksum=canonical_json.sha256_hex(canonical),
    )


def projection_id(surface: Surface, row: Row, execution: ExecutionId) -> str:
    """An id that a row keeps from its first event to its last, and shares with no other."""
    return execution if surface == "execution" else f"{execution}/{_id_within(surface, row)}"


def _id_within(surface: Surface, row: Row) -> str:
    if surface != "business_objects":
        (field,) = ID_FIELDS[surface]
        return str(row[field])
    if "objects_ref" in row:
        return str(row["event_id"])
    # A deleted object that comes back is another row, so its life is part of its id.
    return f"{object_key(row['object'], row['id'])}@{row['first_event_id']}"
