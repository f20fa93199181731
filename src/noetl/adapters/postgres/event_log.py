"""EventLog on PostgreSQL: `noetl.event`, numbered in commit order under one advisory lock."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from noetl.adapters.postgres.failures import translated
from noetl.adapters.postgres.group_writer import GroupWriter
from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.rows import STORED_COLUMNS, number, stored
from noetl.adapters.postgres.schema import APPEND_LOCK, ready_pool
from noetl.domain.admission import broken_link
from noetl.domain.log import (
    EMPTY_STREAM,
    Append,
    AppendOutcome,
    AtEvent,
    AtPosition,
    AtTime,
    Cutoff,
    StoredEvent,
    StreamHead,
)
from noetl.kernel.errors import LogUnavailable
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant, to_datetime
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX

_READ = f"""
SELECT {STORED_COLUMNS} FROM noetl.event
WHERE execution_id = $1 AND stream_version > $2 ORDER BY stream_version LIMIT $3"""
_TAIL = f"""
SELECT {STORED_COLUMNS} FROM noetl.event WHERE position > $1 ORDER BY position LIMIT $2"""
_HEAD = """
SELECT stream_version, event_id, tenant_id, organization_id FROM noetl.event
WHERE execution_id = $1 ORDER BY stream_version DESC LIMIT 1"""
_VERSION_OF_EVENT = """
SELECT stream_version FROM noetl.event WHERE execution_id = $1 AND event_id = $2"""
# Both columns rise with the version, so twenty probes find the place among a million events.
_LAST_VERSION = """
WITH RECURSIVE range (low, high) AS (
    SELECT 0::bigint, $2::bigint
    UNION ALL
    SELECT
        CASE WHEN event.{column} <= $3 THEN event.stream_version ELSE range.low END,
        CASE WHEN event.{column} <= $3 THEN range.high ELSE event.stream_version - 1 END
    FROM range JOIN noetl.event
        ON event.execution_id = $1 AND event.stream_version = (range.low + range.high + 1) / 2
    WHERE range.low < range.high
)
SELECT low FROM range WHERE low = high"""
_LAST_AT_POSITION = _LAST_VERSION.format(column="position")
_LAST_AT_TIME = _LAST_VERSION.format(column="ingest_time")

# Rows that came in another way than by appending, say from a backup, may not have moved it.
_IS_BEHIND = """
SELECT last_value < (SELECT max(position) FROM noetl.event) FROM noetl.event_position"""
_CATCH_UP = f"""
WITH held AS MATERIALIZED (SELECT {APPEND_LOCK})
SELECT setval('noetl.event_position', greatest(
    pg_sequence_last_value('noetl.event_position'), (SELECT max(position) FROM noetl.event)
)) FROM held"""


class PostgresEventLog:
    def __init__(self, pool: PostgresPool, writer: GroupWriter, *, owns_pool: bool = False) -> None:
        self._pool = pool
        self._writer = writer
        self._owns_pool = owns_pool

    @classmethod
    async def open(
        cls,
        where: PostgresPool | str,
        clock: Callable[[], Instant],
        *,
        distribution: bool = False,
    ) -> "PostgresEventLog":
        """`where` is a pool to share, or an address to open one for this log alone.

        With `distribution` every event is also put into `noetl.outbox`.
        """
        pool, owns_pool = await ready_pool(where, LogUnavailable)
        log = cls(pool, GroupWriter(pool, clock, distribution=distribution), owns_pool=owns_pool)
        if await log._value(_IS_BEHIND):
            await log._value(_CATCH_UP)
        return log

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        refused = [broken_link(append) for append in group]
        fit = [append for append, error in zip(group, refused, strict=True) if error is None]
        if not fit:
            return [error for error in refused if error is not None]
        with translated(LogUnavailable):
            written = iter(await self._writer.write(fit))
        return [error or next(written) for error in refused]

    async def head(self, execution: ExecutionId) -> StreamHead:
        place = await self._place(execution)
        return EMPTY_STREAM if place is None else place[0]

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        place = await self._place(execution)
        return None if place is None else place[1]

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        return await self._select(_READ, number(execution), after_version, limit)

    async def tail(
        self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        return await self._select(_TAIL, after_position, limit)

    async def version_at(self, execution: ExecutionId, cutoff: Cutoff) -> int | None:
        place = await self._place(execution)
        if place is None:
            return None
        known = number(execution), place[0].version
        match cutoff:
            case AtEvent(event_id=event_id):
                return await self._version(_VERSION_OF_EVENT, known[0], number(event_id))
            case AtPosition(position=position):
                return await self._version(_LAST_AT_POSITION, *known, position)
            case AtTime(time=time):
                return await self._version(_LAST_AT_TIME, *known, to_datetime(time))

    async def identity(self) -> str:
        return str(await self._value("SELECT identity FROM noetl.log_identity"))

    async def is_archived(self, execution: ExecutionId) -> bool:
        """Nothing is moved out of this log."""
        del execution
        return False

    async def close(self) -> None:
        if self._owns_pool:
            await self._pool.close()

    async def _place(self, execution: ExecutionId) -> tuple[StreamHead, Scope] | None:
        with translated(LogUnavailable):
            async with self._pool.connection() as connection:
                row = await connection.fetchrow(_HEAD, number(execution))
        if row is None:
            return None
        version, event_id, tenant, organization = row
        return StreamHead(version, EventId(str(event_id))), Scope(tenant, organization)

    async def _select(self, sql: str, *arguments: int | None) -> list[StoredEvent]:
        with translated(LogUnavailable):
            async with self._pool.connection() as connection:
                rows = await connection.fetch(sql, *arguments)
        return [stored(row) for row in rows]

    async def _value(self, sql: str, *arguments: int | datetime | None) -> Any:
        with translated(LogUnavailable):
            async with self._pool.connection() as connection:
                return await connection.fetchval(sql, *arguments)

    async def _version(self, sql: str, *arguments: int | datetime | None) -> int | None:
        version: int | None = await self._value(sql, *arguments)
        return version
