"""EventLog on one SQLite file. SQLite has one writer at a time, which gives L4 and L5 for free."""

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from noetl.adapters.sqlite.connection import SqliteFile
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
    StoredEvent,
    StreamHead,
)
from noetl.kernel import canonical_json
from noetl.kernel.errors import DuplicateFact, LogError, LogUnavailable, VersionConflict
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.wire.checks import is_snowflake
from noetl.wire.columns import unique_fact

SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
    position INTEGER PRIMARY KEY,
    execution_id INTEGER NOT NULL,
    stream_version INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    ingest_time TEXT NOT NULL,
    idempotency_key TEXT,
    unique_fact TEXT,
    envelope_checksum TEXT NOT NULL,
    annotations BLOB,
    canonical BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_stream ON event (execution_id, stream_version);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_id ON event (execution_id, event_id);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_idempotency_key
    ON event (execution_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS uidx_event_unique_fact
    ON event (execution_id, unique_fact) WHERE unique_fact IS NOT NULL;
CREATE TABLE IF NOT EXISTS log_identity (identity TEXT NOT NULL);
INSERT INTO log_identity SELECT lower(hex(randomblob(16)))
    WHERE NOT EXISTS (SELECT 1 FROM log_identity);
"""
INSERT = f"INSERT INTO event VALUES ({', '.join('?' * 13)})"
_SELECT = """
SELECT execution_id, stream_version, position, ingest_time, CAST(canonical AS BLOB),
    envelope_checksum, annotations FROM event WHERE """
_HEAD = """
SELECT stream_version, event_id, tenant_id, organization_id, ingest_time FROM event
WHERE execution_id = ? ORDER BY stream_version DESC LIMIT 1"""


class _Place(NamedTuple):
    """Where a stream ends, whose it is, and when its last event came in."""

    head: StreamHead = EMPTY_STREAM
    scope: Scope | None = None
    ingest_time: Instant = Instant("")


class SqliteEventLog:
    def __init__(self, file: SqliteFile, clock: Callable[[], Instant]) -> None:
        self._file = file.raising(LogUnavailable)
        self._clock = clock

    @classmethod
    async def open(cls, file: SqliteFile, clock: Callable[[], Instant]) -> "SqliteEventLog":
        log = cls(file, clock)
        await log._file.migrate(SCHEMA)
        return log

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        return await self._file.write(
            lambda connection: _append_group(connection, group, self._clock())
        )

    async def head(self, execution: ExecutionId) -> StreamHead:
        return (await self._file.read(lambda connection: _place(connection, execution))).head

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        return (await self._file.read(lambda connection: _place(connection, execution))).scope

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        where = "execution_id = ? AND stream_version > ? ORDER BY stream_version LIMIT ?"
        return await self._select(where, _number(execution), after_version, limit)

    async def tail(
        self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        return await self._select("position > ? ORDER BY position LIMIT ?", after_position, limit)

    async def version_at(self, execution: ExecutionId, cutoff: Cutoff) -> int | None:
        return await self._file.read(lambda connection: _version_at(connection, execution, cutoff))

    async def identity(self) -> str:
        sql = "SELECT identity FROM log_identity"
        return str(
            (await self._file.read(lambda connection: connection.execute(sql).fetchone()))[0]
        )

    async def is_archived(self, execution: ExecutionId) -> bool:
        """Nothing is moved out of this log."""
        del execution
        return False

    async def close(self) -> None:
        """The file stays open: it belongs to whoever opened it."""

    async def _select(self, where: str, *arguments: int) -> list[StoredEvent]:
        return await self._file.read(
            lambda connection: [
                StoredEvent(ExecutionId(str(row[0])), *row[1:])
                for row in connection.execute(_SELECT + where, arguments)
            ]
        )


def _append_group(
    connection: sqlite3.Connection, group: Sequence[Append], now: Instant
) -> list[AppendOutcome]:
    position = connection.execute("SELECT coalesce(max(position), 0) FROM event").fetchone()[0]
    outcomes: list[AppendOutcome] = []
    for append in group:
        outcome = _append_one(connection, append, position, now)
        if isinstance(outcome, Appended) and not outcome.duplicate:
            position = outcome.last_position
        outcomes.append(outcome)
    return outcomes


def _append_one(
    connection: sqlite3.Connection, append: Append, position: int, now: Instant
) -> AppendOutcome:
    broken = broken_link(append)
    if broken is not None:
        return broken
    place = _place(connection, append.execution_id)
    refused = refusal(append, place.head, place.scope)
    if refused is not None:
        # A stale writer may be one that did not hear that its events had landed.
        stale = isinstance(refused, VersionConflict)
        return (_recorded_before(connection, append) if stale else None) or refused
    rows = rows_of(append, position, max(now, place.ingest_time))
    connection.execute("SAVEPOINT one")
    try:
        connection.executemany(INSERT, rows)
    except sqlite3.IntegrityError:
        connection.execute("ROLLBACK TO one")
        return _recorded_before(connection, append) or _duplicate_fact(connection, append)
    finally:
        connection.execute("RELEASE one")
    last = position + len(rows)
    return Appended(append.expected_version + len(rows), position + 1, last)


def rows_of(append: Append, position: int, ingest_time: Instant) -> list[tuple[object, ...]]:
    """What INSERT takes for each event, the first of them right behind `position`."""
    execution = int(append.execution_id)
    tenant, organization = append.scope
    return [
        (
            place,
            execution,
            sealed.envelope.stream_version,
            int(sealed.envelope.event_id),
            sealed.envelope.event_type,
            tenant,
            organization,
            ingest_time,
            sealed.envelope.idempotency_key,
            unique_fact(sealed),
            sealed.checksum,
            canonical_json.encode(sealed.annotations) if sealed.annotations else None,
            sealed.canonical,
        )
        for place, sealed in enumerate(append.events, start=position + 1)
    ]


def _number(snowflake: str) -> int:
    """For an integer column; text that is no id of ours matches nothing."""
    return int(snowflake) if is_snowflake(snowflake) else -1


def _place(connection: sqlite3.Connection, execution: ExecutionId) -> _Place:
    row = connection.execute(_HEAD, (_number(execution),)).fetchone()
    if row is None:
        return _Place()
    version, event_id, tenant, organization, ingest_time = row
    return _Place(
        StreamHead(version, EventId(str(event_id))), Scope(tenant, organization), ingest_time
    )


def _recorded_before(connection: sqlite3.Connection, append: Append) -> AppendOutcome | None:
    keys = keys_of(append)
    sql = f"""SELECT idempotency_key, stream_version, position FROM event
        WHERE execution_id = ? AND idempotency_key IN ({", ".join("?" * len(keys))})"""
    rows = connection.execute(sql, (int(append.execution_id), *keys))
    return recorded_before(append, {key: (version, at) for key, version, at in rows})


def _duplicate_fact(connection: sqlite3.Connection, append: Append) -> LogError:
    seen: set[str] = set()
    sql = "SELECT 1 FROM event WHERE execution_id = ? AND unique_fact = ?"
    for sealed in append.events:
        fact = unique_fact(sealed)
        if fact is None:
            continue
        if fact in seen or connection.execute(sql, (int(append.execution_id), fact)).fetchone():
            return DuplicateFact(append.stream, fact)
        seen.add(fact)
    return DuplicateFact(append.stream, "an event with one of these ids")


def _version_at(
    connection: sqlite3.Connection, execution: ExecutionId, cutoff: Cutoff
) -> int | None:
    head = _place(connection, execution).head
    if head.version == 0:
        return None
    match cutoff:
        case AtEvent(event_id=event_id):
            sql = "SELECT stream_version FROM event WHERE execution_id = ? AND event_id = ?"
            row = connection.execute(sql, (int(execution), _number(event_id))).fetchone()
            return None if row is None else int(row[0])
        case AtPosition(position=position):
            point: int | str = position
            sql = "SELECT position FROM event WHERE execution_id = ? AND stream_version = ?"
        case AtTime(time=time):
            point = time
            sql = "SELECT ingest_time FROM event WHERE execution_id = ? AND stream_version = ?"
    # Both rise with the version, so twenty probes find the place among a million events.
    return bisect_right(
        range(1, head.version + 1),
        point,
        key=lambda version: connection.execute(sql, (int(execution), version)).fetchone()[0],
    )
