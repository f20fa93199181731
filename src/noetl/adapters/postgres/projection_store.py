"""ProjectionStore on PostgreSQL: the upsert itself refuses older versions."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import asyncpg
import msgspec

from noetl.adapters.postgres.failures import translated
from noetl.adapters.postgres.pool import Connection, PostgresPool
from noetl.adapters.postgres.rows import Row, number, shown_json, shown_text
from noetl.adapters.postgres.schema import ready_pool
from noetl.domain.projection import (
    Cursor,
    ProjectionKey,
    ProjectionQuery,
    ProjectionRecord,
    check_record,
    key_of,
)
from noetl.kernel import canonical_json
from noetl.kernel.errors import LogReplaced, StoreUnavailable
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant, to_datetime
from noetl.kernel.scope import Scope

STATUS_CHARACTERS_MAX = 64
"""Of the status that is indexed; an entry of an index must stay small."""

_COLUMNS = {
    "tenant_id": "text",
    "organization_id": "text",
    "projection_type": "text",
    "projection_id": "text",
    "execution_id": "bigint",
    "version": "bigint",
    "position": "bigint",
    "source_event_id": "bigint",
    "checksum": "text",
    "meta": "json",
    "state": "jsonb",
    "canonical": "bytea",
}
_KEY_COLUMNS = ("tenant_id", "organization_id", "projection_type", "projection_id")
_ARRAYS = ", ".join(f"${at}::{kind}[]" for at, kind in enumerate(_COLUMNS.values(), start=1))
_REPLACED = (*(name for name in _COLUMNS if name not in _KEY_COLUMNS), "status", "updated_at")
_UPSERT = f"""
INSERT INTO noetl.projection AS kept ({", ".join(_COLUMNS)}, status, updated_at)
SELECT *, left(state ->> 'status', {STATUS_CHARACTERS_MAX}), ${len(_COLUMNS) + 1}::timestamptz
FROM unnest({_ARRAYS}) AS given ({", ".join(_COLUMNS)})
ON CONFLICT ({", ".join(_KEY_COLUMNS)}) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in _REPLACED)}
WHERE excluded.version > kept.version"""
_SELECT = f"""
SELECT {", ".join(name for name in _COLUMNS if name != "state")} FROM noetl.projection
WHERE tenant_id = $1 AND organization_id = $2 AND projection_type = $3"""
_REMOVE = """
DELETE FROM noetl.projection WHERE tenant_id = $1 AND organization_id = $2 AND execution_id = $3"""
_CURSOR = "SELECT log_identity, position FROM noetl.projection_checkpoint WHERE consumer = $1"
_MOVE = """
INSERT INTO noetl.projection_checkpoint AS kept (consumer, log_identity, position, updated_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (consumer) DO UPDATE
SET position = excluded.position, updated_at = excluded.updated_at
WHERE excluded.position > kept.position AND excluded.log_identity = kept.log_identity"""
_CLEAR = "DELETE FROM noetl.projection; DELETE FROM noetl.projection_checkpoint"


class PostgresProjectionStore:
    def __init__(
        self, pool: PostgresPool, clock: Callable[[], Instant], *, owns_pool: bool = False
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._owns_pool = owns_pool

    @classmethod
    async def open(
        cls, where: PostgresPool | str, clock: Callable[[], Instant]
    ) -> "PostgresProjectionStore":
        pool, owns_pool = await ready_pool(where, StoreUnavailable)
        return cls(pool, clock, owns_pool=owns_pool)

    async def save(self, records: Sequence[ProjectionRecord], cursor: Cursor | None = None) -> int:
        now = to_datetime(self._clock())
        rounds = [_arrays(each) for each in _rounds(records)]
        written = 0
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection, connection.transaction():
                if cursor is not None:
                    await _move(connection, cursor, now)
                for arrays in rounds:
                    written += _count(await connection.execute(_UPSERT, *arrays, now))
        return len(records) - written

    async def load(
        self, scope: Scope, projection_type: str, projection_id: str
    ) -> ProjectionRecord | None:
        sql = f"{_SELECT} AND projection_id = $4"
        found = await self._select(sql, *scope, projection_type, projection_id)
        return found[0] if found else None

    async def query(self, query: ProjectionQuery) -> list[ProjectionRecord]:
        sql = _SELECT
        arguments: list[str | int | None] = [*query.scope, query.projection_type]
        if query.after_id:
            arguments.append(query.after_id)
            sql += f" AND projection_id {'<' if query.newest_first else '>'} ${len(arguments)}"
        if query.execution_id is not None:
            arguments.append(number(query.execution_id))
            sql += f" AND execution_id = ${len(arguments)}"
        if query.where:
            # Containment compares the type too: the number 1 is not the text "1".
            arguments.append(shown_json(canonical_json.encode(query.where).decode()))
            sql += f" AND state @> ${len(arguments)}::jsonb"
        if "status" in query.where:
            arguments.append(shown_text(query.where["status"])[:STATUS_CHARACTERS_MAX])
            sql += f" AND status = ${len(arguments)}"
        arguments.append(query.limit)
        order = "DESC" if query.newest_first else "ASC"
        sql += f" ORDER BY projection_id {order} LIMIT ${len(arguments)}"
        return await self._select(sql, *arguments)

    async def cursor(self, consumer: str) -> Cursor | None:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                return await _cursor(connection, consumer)

    async def remove(self, scope: Scope, execution: ExecutionId) -> int:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                return _count(await connection.execute(_REMOVE, *scope, number(execution)))

    async def clear(self) -> None:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection, connection.transaction():
                await connection.execute(_CLEAR)

    async def close(self) -> None:
        if self._owns_pool:
            await self._pool.close()

    async def _select(self, sql: str, *arguments: str | int | None) -> list[ProjectionRecord]:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                return [_record(row) for row in await connection.fetch(sql, *arguments)]


async def _move(connection: Connection, cursor: Cursor, now: datetime) -> None:
    await connection.execute(_MOVE, cursor.consumer, cursor.log_identity, cursor.position, now)
    known = await _cursor(connection, cursor.consumer)
    if known is not None and known.log_identity != cursor.log_identity:
        raise LogReplaced(cursor.consumer, known=known.log_identity, actual=cursor.log_identity)


async def _cursor(connection: Connection, consumer: str) -> Cursor | None:
    row = await connection.fetchrow(_CURSOR, consumer)
    if row is None:
        return None
    return Cursor(consumer=consumer, log_identity=row["log_identity"], position=row["position"])


def _rounds(records: Sequence[ProjectionRecord]) -> Iterator[list[ProjectionRecord]]:
    """Records in as few rounds as there are versions of one key: a statement writes a row once.

    Each round is in the order of its keys, so that two savers never wait for each other in a ring.
    """
    rest = list(records)
    while rest:
        round_: dict[ProjectionKey, ProjectionRecord] = {}
        later = []
        for record in rest:
            if round_.setdefault(key_of(record), record) is not record:
                later.append(record)
        yield [round_[key] for key in sorted(round_)]
        rest = later


def _arrays(records: list[ProjectionRecord]) -> list[Row]:
    return list(zip(*map(_row, records), strict=True))


def _row(record: ProjectionRecord) -> Row:
    check_record(record)
    return (
        *record.scope,
        record.projection_type,
        record.projection_id,
        int(record.execution_id),
        record.version,
        record.position,
        int(record.source_event_id),
        record.checksum,
        canonical_json.encode(record.meta).decode(),
        shown_json(record.canonical.decode()),
        record.canonical,
    )


def _record(row: asyncpg.Record) -> ProjectionRecord:
    return ProjectionRecord(
        scope=Scope(row["tenant_id"], row["organization_id"]),
        projection_type=row["projection_type"],
        projection_id=row["projection_id"],
        execution_id=ExecutionId(str(row["execution_id"])),
        version=row["version"],
        position=row["position"],
        source_event_id=EventId(str(row["source_event_id"])),
        canonical=row["canonical"],
        checksum=row["checksum"],
        meta=msgspec.json.decode(row["meta"]),
    )


def _count(status: str) -> int:
    """How many rows a statement touched, from its `INSERT 0 7` or `DELETE 7`."""
    return int(status.rpartition(" ")[2])
