"""A read model's record: what is known, from which events, proved by which checksum."""

import re
from typing import Any, NamedTuple

import msgspec

from noetl.kernel import canonical_json
from noetl.kernel.errors import InvariantBroken
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope

QUERY_RECORDS_MAX = 1_000

_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ProjectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One row of one read model. `canonical` is the state; stores may index a copy of it."""

    scope: Scope
    projection_type: str  # execution, stage, frame, command, loop, business_object, …
    projection_id: str
    execution_id: ExecutionId
    version: int  # of the stream, when this state was true
    position: int  # of the log
    source_event_id: EventId
    canonical: bytes
    checksum: str  # sha256 of `canonical`
    meta: dict[str, Any] = {}

    @property
    def state(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.json.decode(self.canonical)
        return plain


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far a named consumer has come in a log."""

    consumer: str
    log_identity: str
    position: int


class ProjectionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of one read model. What it asks for is checked here, once for every store."""

    scope: Scope
    projection_type: str
    execution_id: ExecutionId | None = None
    where: dict[str, str] = {}  # exact matches on top-level text fields of the state
    after_id: str = ""  # the last projection_id of the page before
    limit: int = 100
    newest_first: bool = False  # ids fall, and `after_id` is the lowest so far; "": from the top

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= QUERY_RECORDS_MAX:
            raise ValueError(f"limit is {self.limit}; ask for 1 to {QUERY_RECORDS_MAX} records")
        for name in self.where:
            if not _FIELD_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a field; use letters, digits and _")


class ProjectionKey(NamedTuple):
    scope: Scope
    projection_type: str
    projection_id: str


def key_of(record: ProjectionRecord) -> ProjectionKey:
    return ProjectionKey(record.scope, record.projection_type, record.projection_id)


def projection_checksum(state: Any) -> str:
    """Over the canonical state, never over the bytes of a backend."""
    return canonical_json.checksum(state)


def check_record(record: ProjectionRecord) -> None:
    """Refuse a record that proves nothing: bytes without their checksum, or not an object."""
    actual = canonical_json.sha256_hex(record.canonical)
    if actual != record.checksum:
        raise InvariantBroken(
            f"{_name(record)} has checksum {record.checksum}, its bytes hash to {actual}"
        )
    try:
        _OBJECT.decode(record.canonical.decode())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvariantBroken(f"the state of {_name(record)} is not an object: {error}") from error


def _name(record: ProjectionRecord) -> str:
    return f"{record.projection_type} {record.projection_id} at version {record.version}"
