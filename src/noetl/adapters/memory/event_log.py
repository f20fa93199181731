"""EventLog in lists: the reference adapter, for tests and simulations. Forgets when it dies."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from noetl.domain.admission import broken_link, keys_of, recorded_before, refusal
from noetl.domain.log import (
    EMPTY_STREAM,
    Append,
    Appended,
    AppendOutcome,
    AtEvent,
    AtPosition,
    AtTime,
    Cutoff,
    SealedEvent,
    StoredEvent,
    StreamHead,
)
from noetl.kernel import canonical_json
from noetl.kernel.errors import DuplicateFact, VersionConflict
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.wire.columns import unique_fact


class _Stream:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.events: list[StoredEvent] = []
        self.versions: dict[EventId, int] = {}
        self.places: dict[str, tuple[int, int]] = {}  # idempotency key -> (version, position)
        self.facts: set[str] = set()
        self.head = EMPTY_STREAM


class MemoryEventLog:
    def __init__(self, clock: Callable[[], Instant], identity: str = "memory") -> None:
        self._clock = clock
        self._identity = identity
        self._all: list[StoredEvent] = []
        self._streams: dict[ExecutionId, _Stream] = {}

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        return [self._append(append) for append in group]

    async def head(self, execution: ExecutionId) -> StreamHead:
        stream = self._streams.get(execution)
        return EMPTY_STREAM if stream is None else stream.head

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        stream = self._streams.get(execution)
        return None if stream is None else stream.scope

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        stream = self._streams.get(execution)
        return [] if stream is None else stream.events[after_version : after_version + limit]

    async def tail(
        self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        return self._all[after_position : after_position + limit]

    async def version_at(self, execution: ExecutionId, cutoff: Cutoff) -> int | None:
        stream = self._streams.get(execution)
        if stream is None:
            return None
        match cutoff:
            case AtEvent(event_id=event_id):
                return stream.versions.get(event_id)
            case AtPosition(position=position):
                return bisect_right(stream.events, position, key=lambda event: event.position)
            case AtTime(time=time):
                return bisect_right(stream.events, time, key=lambda event: event.ingest_time)

    async def identity(self) -> str:
        return self._identity

    async def is_archived(self, execution: ExecutionId) -> bool:
        """Nothing is moved out of this log."""
        del execution
        return False

    async def close(self) -> None:
        """Nothing to let go of."""

    def _append(self, append: Append) -> AppendOutcome:
        broken = broken_link(append)
        if broken is not None:
            return broken
        stream = self._streams.get(append.execution_id) or _Stream(append.scope)
        refused = refusal(append, stream.head, stream.scope)
        if refused is not None and not isinstance(refused, VersionConflict):
            return refused
        places = {key: stream.places[key] for key in keys_of(append) if key in stream.places}
        known = recorded_before(append, places) or refused
        if known is not None:
            return known
        facts = [fact for sealed in append.events if (fact := unique_fact(sealed)) is not None]
        again = _first_again(append, facts, stream)
        if again is not None:
            return DuplicateFact(append.stream, again)
        stream.facts.update(facts)
        self._streams[append.execution_id] = stream
        return self._write(append, stream)

    def _write(self, append: Append, stream: _Stream) -> Appended:
        last = stream.events[-1].ingest_time if stream.events else Instant("")
        ingest_time = max(self._clock(), last)
        first_position = len(self._all) + 1
        for sealed in append.events:
            stored = _stored(sealed, len(self._all) + 1, ingest_time)
            self._all.append(stored)
            stream.events.append(stored)
            stream.versions[sealed.envelope.event_id] = stored.stream_version
            key = sealed.envelope.idempotency_key
            if key is not None:
                stream.places[key] = (stored.stream_version, stored.position)
        stream.head = StreamHead(len(stream.events), append.events[-1].envelope.event_id)
        return Appended(stream.head.version, first_position, len(self._all))


def _first_again(append: Append, facts: list[str], stream: _Stream) -> str | None:
    """A fact or an event that the stream has, or that the append has twice."""
    for sealed in append.events:
        if sealed.envelope.event_id in stream.versions:
            return f"event {sealed.envelope.event_id}"
    return next((fact for fact in facts if fact in stream.facts or facts.count(fact) > 1), None)


def _stored(sealed: SealedEvent, position: int, ingest_time: Instant) -> StoredEvent:
    return StoredEvent(
        sealed.envelope.execution_id,
        sealed.envelope.stream_version,
        position,
        ingest_time,
        sealed.canonical,
        sealed.checksum,
        canonical_json.encode(sealed.annotations) if sealed.annotations else None,
    )
