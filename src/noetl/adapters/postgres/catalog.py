"""Catalog on PostgreSQL: a lock per path numbers the versions."""

from collections.abc import Callable

import asyncpg
import msgspec

from noetl.adapters.postgres.failures import translated
from noetl.adapters.postgres.key_text import checked_key, is_key
from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.rows import Row, instant, number, shown_text
from noetl.adapters.postgres.schema import LOCK_SPACE, ready_pool
from noetl.domain.catalog import CatalogEntry, NewCatalogEntry
from noetl.kernel import canonical_json
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.instant import Instant, to_datetime
from noetl.kernel.scope import Scope
from noetl.ports.catalog import LIST_ENTRIES_MAX

_VERSION_MAX = 2**63 - 1
_COLUMNS = (
    "catalog_id, path, version, kind, digest, name, description, meta, created_at,"
    " tenant_id, organization_id"
)
# Held until the commit, so that whoever comes next sees the version that this one wrote.
_LOCK = f"SELECT pg_advisory_xact_lock(hashtextextended($1, {LOCK_SPACE}))"
_INSERT = f"""
INSERT INTO noetl.catalog ({_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING {_COLUMNS}"""
_SELECT = f"SELECT {_COLUMNS} FROM noetl.catalog WHERE tenant_id = $1 AND organization_id = $2"
_NEWEST = f"{_SELECT} AND path = $3 ORDER BY version DESC LIMIT 1"


class PostgresCatalog:
    def __init__(
        self,
        pool: PostgresPool,
        clock: Callable[[], Instant],
        new_id: Callable[[], str],
        *,
        owns_pool: bool = False,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._new_id = new_id
        self._owns_pool = owns_pool

    @classmethod
    async def open(
        cls, where: PostgresPool | str, clock: Callable[[], Instant], new_id: Callable[[], str]
    ) -> "PostgresCatalog":
        pool, owns_pool = await ready_pool(where, StoreUnavailable)
        return cls(pool, clock, new_id, owns_pool=owns_pool)

    async def register(self, scope: Scope, entry: NewCatalogEntry) -> CatalogEntry:
        path = checked_key(entry.path, "the playbook's path")
        meta = _json(entry)
        lock = canonical_json.encode(["catalog", *scope, path]).decode()
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection, connection.transaction():
                await connection.execute(_LOCK, lock)
                newest = await connection.fetchrow(_NEWEST, *scope, path)
                if newest is not None and newest["digest"] == entry.digest:
                    return _entry(newest)
                version = 1 if newest is None else newest["version"] + 1
                row = self._row(scope, entry, version, meta)
                written = await connection.fetchrow(_INSERT, *row)
        assert written is not None  # what RETURNING promises
        return _entry(written)

    async def find(
        self, scope: Scope, path: str, version: int | None = None
    ) -> CatalogEntry | None:
        if not is_key(path):
            return None
        if version is None:
            return await self._one(_NEWEST, *scope, path)
        if not 0 < version <= _VERSION_MAX:
            return None
        sql = f"{_SELECT} AND path = $3 AND version = $4"
        return await self._one(sql, *scope, path, version)

    async def find_by_id(self, scope: Scope, catalog_id: str) -> CatalogEntry | None:
        return await self._one(f"{_SELECT} AND catalog_id = $3", *scope, number(catalog_id))

    async def list(
        self,
        scope: Scope,
        *,
        path: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = LIST_ENTRIES_MAX,
    ) -> list[CatalogEntry]:
        if path is not None and not is_key(path):
            return []
        sql = f"{_SELECT} AND (path, version) > ($3, $4)"
        arguments: list[str | int] = [*scope, *after]
        if path is not None:
            arguments.append(path)
            sql += f" AND path = ${len(arguments)}"
        arguments.append(min(limit, LIST_ENTRIES_MAX))
        sql += f" ORDER BY path, version LIMIT ${len(arguments)}"
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                return [_entry(row) for row in await connection.fetch(sql, *arguments)]

    async def close(self) -> None:
        if self._owns_pool:
            await self._pool.close()

    async def _one(self, sql: str, *arguments: str | int | None) -> CatalogEntry | None:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                row = await connection.fetchrow(sql, *arguments)
        return None if row is None else _entry(row)

    def _row(self, scope: Scope, entry: NewCatalogEntry, version: int, meta: str) -> Row:
        description = entry.description
        return (
            int(self._new_id()),
            entry.path,
            version,
            shown_text(entry.kind),
            shown_text(entry.digest),
            shown_text(entry.name),
            None if description is None else shown_text(description),
            meta,
            to_datetime(self._clock()),
            *scope,
        )


def _json(entry: NewCatalogEntry) -> str:
    canonical_json.check_plain(entry.meta, "meta")
    return canonical_json.encode(entry.meta).decode()


def _entry(row: asyncpg.Record) -> CatalogEntry:
    return CatalogEntry(
        catalog_id=str(row["catalog_id"]),
        path=row["path"],
        version=row["version"],
        kind=row["kind"],
        digest=row["digest"],
        name=row["name"],
        description=row["description"],
        registered_at=instant(row["created_at"]),
        meta=msgspec.json.decode(row["meta"]),
    )
