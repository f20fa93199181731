"""What goes into the log and what comes back: sealed bytes, stream heads, outcomes."""

from typing import Any

import msgspec

from noetl.domain.events import Event
from noetl.domain.events.envelope import Envelope
from noetl.kernel.errors import LogError
from noetl.kernel.ids import EventId, ExecutionId, stream_id
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope

APPEND_EVENTS_MAX = 500
"""Events in one atomic append. A longer decision follows by deciding again."""


class StreamHead(msgspec.Struct, frozen=True):
    """Where a stream ends. Version 0 is a stream that has no events yet."""

    version: int = 0
    last_event_id: EventId | None = None


EMPTY_STREAM = StreamHead()


class SealedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the stream, its canonical bytes and their checksum."""

    envelope: Envelope
    event: Event
    canonical: bytes
    checksum: str
    annotations: dict[str, Any] = {}


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """A row of the log as it lies there. Stores never look inside `canonical`."""

    execution_id: ExecutionId
    stream_version: int
    position: int
    ingest_time: Instant
    canonical: bytes
    checksum: str
    annotations: bytes | None = None  # JSON, or None when there are none


class Append(msgspec.Struct, frozen=True):
    """Events of one execution that land together or not at all."""

    scope: Scope
    execution_id: ExecutionId
    expected_version: int
    events: tuple[SealedEvent, ...]

    @property
    def stream(self) -> str:
        return stream_id(self.execution_id)


class Appended(msgspec.Struct, frozen=True):
    """Where the events are. `duplicate`: they had been recorded before and nothing was written."""

    version: int
    first_position: int
    last_position: int
    duplicate: bool = False


AppendOutcome = Appended | LogError
"""An error is a value here: one refused append of a group does not fail the others."""


class AtEvent(msgspec.Struct, frozen=True):
    event_id: EventId


class AtPosition(msgspec.Struct, frozen=True):
    position: int


class AtTime(msgspec.Struct, frozen=True):
    """By ingest time, which never falls within a stream."""

    time: Instant


Cutoff = AtEvent | AtPosition | AtTime
