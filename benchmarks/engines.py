"""The limits of `append`: engines without us, fed with rows prepared beforehand.

Each commits once per batch, as durably as the log does. `lean` tables hold the bytes and their
place and nothing else; `same` tables are the log's own, with its columns and indexes.
"""

import os
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.postgres.insertion import insertion
from noetl.adapters.postgres.rows import row_of
from noetl.adapters.sqlite import event_log as sqlite_log
from noetl.adapters.system.clock import utc_now
from noetl.domain.log import EMPTY_STREAM, Append
from noetl.kernel.instant import from_millis
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.testing.histories import START_MILLIS, History, begin, execution_ids, source_of
from noetl.wire.codec import seal

_SQLITE_TABLE = """CREATE TABLE raw (position INTEGER PRIMARY KEY, execution INTEGER NOT NULL,
    version INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (execution, version))"""
_POSTGRES_TABLE = """CREATE TABLE raw (position bigserial PRIMARY KEY, execution bigint NOT NULL,
    version bigint NOT NULL, body bytea NOT NULL, UNIQUE (execution, version))"""


class RawEngine(Protocol):
    name: str

    def prepare(self, appends: Sequence[Append]) -> Any:
        """What `write` takes for these appends; not part of what is measured."""
        ...

    async def write(self, prepared: Any) -> None:
        """One durable commit."""
        ...

    async def close(self) -> None: ...


def lean_rows(appends: Sequence[Append]) -> list[tuple[int, int, bytes]]:
    return [
        (int(append.execution_id), sealed.envelope.stream_version, sealed.canonical)
        for append in appends
        for sealed in append.events
    ]


class BareFile:
    """What the disk can do: one write and one fdatasync per batch."""

    name = "fdatasync file"

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def prepare(self, appends: Sequence[Append]) -> bytes:
        return b"".join(body for _, _, body in lean_rows(appends))

    async def write(self, prepared: bytes) -> None:
        os.write(self._file, prepared)
        os.fdatasync(self._file)

    async def close(self) -> None:
        os.close(self._file)


class LeanSqlite:
    name = "raw sqlite, lean table"
    insert = "INSERT INTO raw (execution, version, body) VALUES (?, ?, ?)"

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self.make_table(self._connection)

    def make_table(self, connection: sqlite3.Connection) -> None:
        connection.execute(_SQLITE_TABLE)

    def prepare(self, appends: Sequence[Append]) -> Any:
        return lean_rows(appends)

    async def write(self, prepared: Any) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(self.insert, prepared)
        self._connection.execute("COMMIT")

    async def close(self) -> None:
        self._connection.close()


class SameSqlite(LeanSqlite):
    name = "raw sqlite, same table"
    insert = sqlite_log.INSERT
    position = 0

    def make_table(self, connection: sqlite3.Connection) -> None:
        connection.executescript(sqlite_log.SCHEMA)

    def prepare(self, appends: Sequence[Append]) -> Any:
        rows: list[tuple[object, ...]] = []
        for append in appends:
            rows += sqlite_log.rows_of(append, self.position, from_millis(START_MILLIS))
            self.position += len(append.events)
        return rows


class LeanPostgres:
    """asyncpg with `unnest`, the fastest insert that was measured."""

    name = "raw postgres, lean table"

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, dsn: str) -> "LeanPostgres":
        connection = await asyncpg.connect(dsn)
        await connection.execute(_POSTGRES_TABLE)
        return cls(connection)

    def prepare(self, appends: Sequence[Append]) -> Any:
        return tuple(zip(*lean_rows(appends), strict=True))

    async def write(self, prepared: Any) -> None:
        await self._connection.execute(
            "INSERT INTO raw (execution, version, body)"
            " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])",
            *prepared,
        )

    async def close(self) -> None:
        await self._connection.close()


class SamePostgres(LeanPostgres):
    """The log's own statement, given rows that are ready."""

    name = "raw postgres, same table"
    _statement = insertion((), distribution=False)

    @classmethod
    async def connect(cls, dsn: str) -> "SamePostgres":
        log = await PostgresEventLog.open(dsn, utc_now)
        await log.append([first_append()])  # makes the tables and the partition
        await log.close()
        return cls(await asyncpg.connect(dsn))

    def prepare(self, appends: Sequence[Append]) -> Any:
        return [
            row_of(sealed, int(append.execution_id))
            for append in appends
            for sealed in append.events
        ]

    async def write(self, prepared: Any) -> None:
        await self._connection.fetchval(self._statement, prepared, datetime.now(UTC))


def first_append() -> Append:
    (execution,) = execution_ids(1, node=9)
    sealed = seal(list(begin(History(execution))), EMPTY_STREAM, source_of(execution))
    return Append(DEFAULT_SCOPE, execution, 0, sealed)
