"""Is the log still what was written? Reads every event and says what does not hold.

Each event is compared with the one before it in its stream. When every link holds, every stream is
dense, has one root and one owner. Memory holds a page and the ends of the streams seen last.
"""

from collections import OrderedDict
from typing import Literal, NamedTuple

import msgspec

from noetl.domain.events.envelope import Envelope
from noetl.domain.log import StoredEvent
from noetl.kernel.errors import EventCorrupt, EventUnreadable
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.event_log import EventLog
from noetl.wire.codec import open_stored

FAULTS_MAX = 20
"""Faults that are described; the others are only counted."""

STREAM_ENDS_MAX = 10_000

FaultKind = Literal[
    "checksum",  # the bytes are not those that were written
    "unreadable",  # the bytes are no event of this place, or none that this build can read
    "version",  # a version is missing, or comes twice
    "root",  # a first event follows another, or a later one follows none
    "link",  # an event does not name the one before it
    "scope",  # the stream changes its owner, or is not its owner's
    "position",  # the position does not rise
    "ingest_time",  # time falls within a stream
    "head",  # the stream does not end where the log says
]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a sound log cannot hold, and where it is."""

    kind: FaultKind
    execution_id: ExecutionId
    stream_version: int
    position: int
    message: str


class StreamReport(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    events: int
    version: int
    last_event_id: EventId | None
    fault_count: int
    faults: tuple[Fault, ...]  # the first of them

    @property
    def is_sound(self) -> bool:
        return self.fault_count == 0


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    identity: str
    streams: int
    events: int
    last_position: int
    fault_count: int
    faults: tuple[Fault, ...]  # the first of them

    @property
    def is_sound(self) -> bool:
        return self.fault_count == 0


class _End(NamedTuple):
    """The last event of a stream that was looked at."""

    version: int = 0
    event_id: EventId | None = None
    scope: Scope | None = None
    position: int = 0
    ingest_time: Instant = Instant("")
    is_known: bool = True  # False: it could not be read, so what follows it cannot be compared


_BEGINNING = _End()


class _Faults:
    def __init__(self) -> None:
        self.count = 0
        self.first: list[Fault] = []

    def add(self, kind: FaultKind, stored: StoredEvent, message: str) -> None:
        self._add(kind, (stored.execution_id, stored.stream_version, stored.position), message)

    def add_at_end(self, kind: FaultKind, execution: ExecutionId, end: _End, message: str) -> None:
        self._add(kind, (execution, end.version, end.position), message)

    def merge(self, report: StreamReport) -> None:
        self.count += report.fault_count
        self.first += report.faults[: FAULTS_MAX - len(self.first)]

    def _add(self, kind: FaultKind, place: tuple[ExecutionId, int, int], message: str) -> None:
        self.count += 1
        if len(self.first) < FAULTS_MAX:
            execution, version, position = place
            fault = Fault(
                kind=kind,
                execution_id=execution,
                stream_version=version,
                position=position,
                message=message,
            )
            self.first.append(fault)


async def verify_stream(log: EventLog, execution: ExecutionId) -> StreamReport:
    """One stream with its end. Events that arrive meanwhile do no harm."""
    head, owner = await log.head(execution), await log.scope_of(execution)
    faults, end, at_head, events = _Faults(), _BEGINNING, _BEGINNING, 0
    last_version = -1
    while end.version > last_version:
        last_version = end.version
        for stored in await log.read(execution, after_version=end.version):
            end = _follow(stored, end, faults)
            events += 1
            if end.version == head.version:
                at_head = end
    if at_head.version != head.version:
        message = f"it ends at version {end.version}, the log says at {head.version}"
        faults.add_at_end("head", execution, end, message)
    elif at_head.is_known and at_head.event_id != head.last_event_id:
        message = f"its last event is {at_head.event_id}, the log says {head.last_event_id}"
        faults.add_at_end("head", execution, end, message)
    if end.scope not in (owner, None):
        message = f"it belongs to {_name(end.scope)}, the log says to {_name(owner)}"
        faults.add_at_end("scope", execution, end, message)
    return StreamReport(
        execution_id=execution,
        events=events,
        version=end.version,
        last_event_id=end.event_id,
        fault_count=faults.count,
        faults=tuple(faults.first),
    )


async def verify_log(log: EventLog, *, stream_ends_max: int = STREAM_ENDS_MAX) -> LogReport:
    """All streams in commit order, then each by itself: two ways that must find the same.

    Streams that are forgotten meanwhile cost a read each.
    """
    identity = await log.identity()
    faults = _Faults()
    ends: OrderedDict[ExecutionId, _End] = OrderedDict()
    streams = events = position = 0
    last_position = -1
    while position > last_position:
        last_position = position
        for stored in await log.tail(after_position=position):
            end = ends.pop(stored.execution_id, None)
            if end is None:
                end = await _end_before(log, stored, faults)
                streams += end.version == 0
            # In a log that rises, the last position is above all others of the stream.
            highest = max(end.position, position)
            ends[stored.execution_id] = _follow(stored, end._replace(position=highest), faults)
            events += 1
            position = stored.position
            if len(ends) > stream_ends_max:
                ends.popitem(last=False)
    if faults.count == 0:
        await _compare_streams(log, events, faults)
    return LogReport(
        identity=identity,
        streams=streams,
        events=events,
        last_position=position,
        fault_count=faults.count,
        faults=tuple(faults.first),
    )


async def _compare_streams(log: EventLog, events: int, faults: _Faults) -> None:
    """The other way to the same events: what readers of each stream find must be all there is."""
    position, found = 0, 0
    last_position = -1
    while position > last_position:
        last_position = position
        for stored in await log.tail(after_position=position):
            position = stored.position
            if stored.stream_version == 1:
                report = await verify_stream(log, stored.execution_id)
                found += report.events
                faults.merge(report)
    if found < events and faults.count == 0:
        end = _BEGINNING._replace(position=position)
        message = f"readers of the streams find {found} of {events} events"
        faults.add_at_end("head", ExecutionId(""), end, message)


async def _end_before(log: EventLog, stored: StoredEvent, faults: _Faults) -> _End:
    """Where the stream ended before this event, as a reader of the stream sees it."""
    version = stored.stream_version
    end = _BEGINNING
    for read in await log.read(stored.execution_id, after_version=max(0, version - 2), limit=2):
        if read.stream_version == version and read.position != stored.position:
            message = f"readers of the stream find this version at position {read.position}"
            faults.add("version", stored, message)
        elif read.stream_version == version - 1 and end.version == 0:
            end = _end(read, _opened(read, None), _BEGINNING)
    return end


def _follow(stored: StoredEvent, end: _End, faults: _Faults) -> _End:
    """Compare an event with the one before it in its stream; returns the new end."""
    envelope = _opened(stored, faults)
    if stored.position <= end.position:
        faults.add("position", stored, f"position {stored.position} follows {end.position}")
    if stored.stream_version <= end.version:
        message = f"version {stored.stream_version} follows version {end.version}"
        faults.add("version", stored, message)
        return end
    if stored.ingest_time < end.ingest_time:
        faults.add("ingest_time", stored, f"{stored.ingest_time} follows {end.ingest_time}")
    is_next = stored.stream_version == end.version + 1
    if not is_next:
        faults.add("version", stored, f"version {stored.stream_version - 1} is not before it")
    if envelope is not None:
        _check_link(stored, envelope, end._replace(is_known=end.is_known and is_next), faults)
        if end.scope not in (envelope.scope, None):
            message = f"it belongs to {_name(envelope.scope)}, its stream to {_name(end.scope)}"
            faults.add("scope", stored, message)
    return _end(stored, envelope, end)


def _check_link(stored: StoredEvent, envelope: Envelope, end: _End, faults: _Faults) -> None:
    named = envelope.prev_event_id
    if (named is None) != (stored.stream_version == 1):
        faults.add("root", stored, f"version {stored.stream_version} follows event {named}")
    elif end.is_known and named != end.event_id:
        faults.add("link", stored, f"it follows event {named}, before it is event {end.event_id}")


def _opened(stored: StoredEvent, faults: _Faults | None) -> Envelope | None:
    """The envelope if it can be made out, even of bytes that are not what they were."""
    try:
        return open_stored(stored).envelope
    except EventCorrupt as error:
        if faults is not None:
            faults.add("checksum", stored, str(error))
    except EventUnreadable as error:
        if faults is not None:
            faults.add("unreadable", stored, str(error))
        return None
    try:
        return open_stored(stored, verify=False).envelope
    except EventUnreadable:
        return None


def _end(stored: StoredEvent, envelope: Envelope | None, before: _End) -> _End:
    return _End(
        version=stored.stream_version,
        event_id=None if envelope is None else envelope.event_id,
        scope=before.scope or (None if envelope is None else envelope.scope),
        position=stored.position,
        ingest_time=stored.ingest_time,
        is_known=envelope is not None,
    )


def _name(scope: Scope | None) -> str:
    return "nobody" if scope is None else "/".join(scope)
