"""ProjectionStore on SQLite: the upsert itself refuses older versions."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.domain.projection import Cursor, ProjectionQuery, ProjectionRecord, check_record
from noetl.kernel import canonical_json
from noetl.kernel.errors import LogReplaced
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope

_SCHEMA = """
CREATE TABLE IF NOT EXISTS projection (
    tenant_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    projection_type TEXT NOT NULL,
    projection_id TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    source_event_id TEXT NOT NULL,
    state TEXT NOT NULL, -- the canonical bytes; as text, so that SQL can look inside
    checksum TEXT NOT NULL,
    meta TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, projection_type, projection_id)
);
CREATE INDEX IF NOT EXISTS idx_projection_execution
    ON projection (tenant_id, organization_id, execution_id, projection_type, projection_id);
CREATE TABLE IF NOT EXISTS projection_checkpoint (
    consumer TEXT NOT NULL PRIMARY KEY,
    log_identity TEXT NOT NULL,
    position INTEGER NOT NULL,
    updated_at TEXT NOT NULL
);
"""
_UPSERT = f"""
INSERT INTO projection VALUES ({", ".join("?" * 12)})
ON CONFLICT (tenant_id, organization_id, projection_type, projection_id) DO UPDATE SET
    execution_id = excluded.execution_id,
    version = excluded.version,
    position = excluded.position,
    source_event_id = excluded.source_event_id,
    state = excluded.state,
    checksum = excluded.checksum,
    meta = excluded.meta,
    updated_at = excluded.updated_at
WHERE excluded.version > projection.version"""
_SELECT = """
SELECT tenant_id, organization_id, projection_type, projection_id, execution_id, version,
    position, source_event_id, state, checksum, meta
FROM projection WHERE tenant_id = ? AND organization_id = ? AND projection_type = ?"""
_REMOVE = """
DELETE FROM projection WHERE tenant_id = ? AND organization_id = ? AND execution_id = ?"""
_CURSOR = "SELECT consumer, log_identity, position FROM projection_checkpoint WHERE consumer = ?"
_MOVE = """
INSERT INTO projection_checkpoint VALUES (?, ?, ?, ?)
ON CONFLICT (consumer) DO UPDATE SET
    position = excluded.position, updated_at = excluded.updated_at
WHERE excluded.position > projection_checkpoint.position"""


class SqliteProjectionStore:
    def __init__(self, file: SqliteFile, clock: Callable[[], Instant]) -> None:
        self._file = file
        self._clock = clock

    @classmethod
    async def open(cls, file: SqliteFile, clock: Callable[[], Instant]) -> "SqliteProjectionStore":
        await file.migrate(_SCHEMA)
        return cls(file, clock)

    async def save(self, records: Sequence[ProjectionRecord], cursor: Cursor | None = None) -> int:
        now = self._clock()
        return await self._file.write(lambda connection: _save(connection, records, cursor, now))

    async def load(
        self, scope: Scope, projection_type: str, projection_id: str
    ) -> ProjectionRecord | None:
        sql = _SELECT + " AND projection_id = ?"
        found = await self._select(sql, *scope, projection_type, projection_id)
        return found[0] if found else None

    async def query(self, query: ProjectionQuery) -> list[ProjectionRecord]:
        sql = _SELECT
        arguments: list[str | int] = [*query.scope, query.projection_type]
        if query.after_id:
            sql += f" AND projection_id {'<' if query.newest_first else '>'} ?"
            arguments.append(query.after_id)
        if query.execution_id is not None:
            sql += " AND execution_id = ?"
            arguments.append(query.execution_id)
        for name, value in query.where.items():
            path = f'$."{name}"'
            # The type too: an object or a list is extracted as text that could equal the value.
            sql += " AND json_type(state, ?) = 'text' AND json_extract(state, ?) = ?"
            arguments += [path, path, value]
        sql += f" ORDER BY projection_id {'DESC' if query.newest_first else 'ASC'} LIMIT ?"
        return await self._select(sql, *arguments, query.limit)

    async def cursor(self, consumer: str) -> Cursor | None:
        return await self._file.read(lambda connection: _cursor(connection, consumer))

    async def remove(self, scope: Scope, execution: ExecutionId) -> int:
        arguments = (*scope, execution)
        return await self._file.write(
            lambda connection: connection.execute(_REMOVE, arguments).rowcount
        )

    async def clear(self) -> None:
        def drop(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM projection")
            connection.execute("DELETE FROM projection_checkpoint")

        await self._file.write(drop)

    async def close(self) -> None:
        """Nothing to let go of: the file belongs to whoever opened it."""

    async def _select(self, sql: str, *arguments: str | int) -> list[ProjectionRecord]:
        return await self._file.read(
            lambda connection: [_record(row) for row in connection.execute(sql, arguments)]
        )


def _save(
    connection: sqlite3.Connection,
    records: Sequence[ProjectionRecord],
    cursor: Cursor | None,
    now: Instant,
) -> int:
    # Rows are made one by one while earlier ones are written: memory stays small, and a record
    # that is refused in the middle undoes them with the transaction.
    written = connection.executemany(_UPSERT, (_row(record, now) for record in records)).rowcount
    if cursor is not None:
        _move(connection, cursor, now)
    return len(records) - max(0, written)


def _move(connection: sqlite3.Connection, cursor: Cursor, now: Instant) -> None:
    known = _cursor(connection, cursor.consumer)
    if known is not None and known.log_identity != cursor.log_identity:
        raise LogReplaced(cursor.consumer, known=known.log_identity, actual=cursor.log_identity)
    connection.execute(_MOVE, (cursor.consumer, cursor.log_identity, cursor.position, now))


def _cursor(connection: sqlite3.Connection, consumer: str) -> Cursor | None:
    row = connection.execute(_CURSOR, (consumer,)).fetchone()
    return None if row is None else Cursor(consumer=row[0], log_identity=row[1], position=row[2])


def _row(record: ProjectionRecord, now: Instant) -> tuple[str | int, ...]:
    check_record(record)
    return (
        *record.scope,
        record.projection_type,
        record.projection_id,
        record.execution_id,
        record.version,
        record.position,
        record.source_event_id,
        record.canonical.decode(),
        record.checksum,
        canonical_json.encode(record.meta).decode(),
        now,
    )


def _record(row: tuple[Any, ...]) -> ProjectionRecord:
    tenant, organization, kind, name, execution, version, position, event, state, checksum, meta = (
        row
    )
    return ProjectionRecord(
        scope=Scope(tenant, organization),
        projection_type=kind,
        projection_id=name,
        execution_id=execution,
        version=version,
        position=position,
        source_event_id=event,
        canonical=state.encode(),
        checksum=checksum,
        meta=msgspec.json.decode(meta),
    )
