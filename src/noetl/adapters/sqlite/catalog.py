"""Catalog on SQLite: the one writer of the file numbers the versions."""

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.domain.catalog import CatalogEntry, NewCatalogEntry
from noetl.kernel import canonical_json
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.catalog import LIST_ENTRIES_MAX

_SCHEMA = """
CREATE TABLE IF NOT EXISTS catalog (
    catalog_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    path TEXT NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    meta TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, path, version)
);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_catalog_id ON catalog (catalog_id);
"""
_INSERT = f"INSERT INTO catalog VALUES ({', '.join('?' * 11)})"
_SELECT = """
SELECT catalog_id, path, version, kind, digest, name, description, meta, created_at
FROM catalog WHERE tenant_id = ? AND organization_id = ?"""
_NEWEST = f"{_SELECT} AND path = ? ORDER BY version DESC LIMIT 1"


class SqliteCatalog:
    def __init__(
        self, file: SqliteFile, clock: Callable[[], Instant], new_id: Callable[[], str]
    ) -> None:
        self._file = file
        self._clock = clock
        self._new_id = new_id

    @classmethod
    async def open(
        cls, file: SqliteFile, clock: Callable[[], Instant], new_id: Callable[[], str]
    ) -> "SqliteCatalog":
        await file.migrate(_SCHEMA)
        return cls(file, clock, new_id)

    async def register(self, scope: Scope, entry: NewCatalogEntry) -> CatalogEntry:
        def next_version(connection: sqlite3.Connection) -> CatalogEntry:
            row = connection.execute(_NEWEST, (*scope, entry.path)).fetchone()
            newest = None if row is None else _entry(row)
            if newest is not None and newest.digest == entry.digest:
                return newest
            version = 1 if newest is None else newest.version + 1
            connection.execute(_INSERT, _row(scope, entry, version, self._new_id(), self._clock()))
            return _entry(connection.execute(_NEWEST, (*scope, entry.path)).fetchone())

        return await self._file.write(next_version)

    async def find(
        self, scope: Scope, path: str, version: int | None = None
    ) -> CatalogEntry | None:
        if version is None:
            return await self._one(_NEWEST, *scope, path)
        return await self._one(f"{_SELECT} AND path = ? AND version = ?", *scope, path, version)

    async def find_by_id(self, scope: Scope, catalog_id: str) -> CatalogEntry | None:
        return await self._one(f"{_SELECT} AND catalog_id = ?", *scope, catalog_id)

    async def list(
        self,
        scope: Scope,
        *,
        path: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = LIST_ENTRIES_MAX,
    ) -> list[CatalogEntry]:
        sql = f"{_SELECT} AND (path, version) > (?, ?)"
        arguments: list[str | int] = [*scope, *after]
        if path is not None:
            sql += " AND path = ?"
            arguments.append(path)
        sql += " ORDER BY path, version LIMIT ?"
        arguments.append(min(limit, LIST_ENTRIES_MAX))
        return await self._file.read(
            lambda connection: [_entry(row) for row in connection.execute(sql, arguments)]
        )

    async def close(self) -> None:
        """Nothing to let go of: the file belongs to whoever opened it."""

    async def _one(self, sql: str, *arguments: str | int) -> CatalogEntry | None:
        row = await self._file.read(
            lambda connection: connection.execute(sql, arguments).fetchone()
        )
        return None if row is None else _entry(row)


def _row(
    scope: Scope, entry: NewCatalogEntry, version: int, catalog_id: str, now: Instant
) -> tuple[str | int | None, ...]:
    canonical_json.check_plain(entry.meta, "meta")
    return (
        catalog_id,
        *scope,
        entry.path,
        version,
        entry.kind,
        entry.digest,
        entry.name,
        entry.description,
        canonical_json.encode(entry.meta).decode(),
        now,
    )


def _entry(row: tuple[Any, ...]) -> CatalogEntry:
    return CatalogEntry(
        catalog_id=row[0],
        path=row[1],
        version=row[2],
        kind=row[3],
        digest=row[4],
        name=row[5],
        description=row[6],
        meta=msgspec.json.decode(row[7]),
        registered_at=row[8],
    )
