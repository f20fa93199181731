"""The schema `noetl`: numbered migrations, applied once, by whoever comes first."""

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from noetl.adapters.postgres.failures import translated
from noetl.adapters.postgres.pool import Connection, PostgresPool
from noetl.kernel.errors import NoETLError

LOCK_SPACE = 0x6E6F6574
"""Keeps our advisory locks apart from those of others in the same database."""

APPEND_LOCK = f"pg_advisory_xact_lock({LOCK_SPACE}, 1)"
SCHEMA_LOCK = f"pg_advisory_xact_lock({LOCK_SPACE}, 2)"
SCHEMA_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '120s'"

_NUMBERED = re.compile(r"(\d{4})_(\w+)\.sql")
_JOURNAL = """
CREATE SCHEMA IF NOT EXISTS noetl;
CREATE TABLE IF NOT EXISTS noetl.schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""
_KNOWN = "SELECT to_regclass('noetl.schema_migration') IS NOT NULL"
_APPLIED = "SELECT version FROM noetl.schema_migration"
_RECORD = "INSERT INTO noetl.schema_migration (version, name) VALUES ($1, $2)"


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    found = []
    for file in files("noetl.adapters.postgres.sql").iterdir():
        if (match := _NUMBERED.fullmatch(file.name)) is not None:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found))


async def ready_pool(
    where: PostgresPool | str, unavailable: type[NoETLError]
) -> tuple[PostgresPool, bool]:
    """A pool over a schema that is up to date, and whether it is the caller's own to close.

    `where` is a pool to share, or an address to open one for.
    """
    owned = isinstance(where, str)
    pool = PostgresPool(where) if isinstance(where, str) else where
    try:
        with translated(unavailable):
            await migrate(pool)
    except NoETLError:
        if owned:
            await pool.close()
        raise
    return pool, owned


async def migrate(pool: PostgresPool) -> None:
    """Bring the schema up to this build. Any number of processes may do so at once."""
    async with pool.connection() as connection:
        # Asked first and without a lock: a role that may not change the schema can still use it.
        if not await _pending(connection):
            return
        async with connection.transaction():
            await connection.execute(f"{SCHEMA_LOCK_TIMEOUT}; SELECT {SCHEMA_LOCK}")
            await connection.execute(_JOURNAL)
            for migration in await _pending(connection):
                await connection.execute(migration.sql)
                await connection.execute(_RECORD, migration.version, migration.name)


async def _pending(connection: Connection) -> list[Migration]:
    if not await connection.fetchval(_KNOWN):
        return list(migrations())
    applied = {row["version"] for row in await connection.fetch(_APPLIED)}
    return [migration for migration in migrations() if migration.version not in applied]
