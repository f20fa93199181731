"""CredentialStore on PostgreSQL: the database holds locked bytes only."""

from collections.abc import Callable

import asyncpg
import msgspec

from noetl.adapters.postgres.failures import translated
from noetl.adapters.postgres.key_text import checked_key, is_key
from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.rows import Row, instant, number, shown_text
from noetl.adapters.postgres.schema import ready_pool
from noetl.domain.credential import CredentialEntry, NewCredential, OpenCredential
from noetl.kernel import canonical_json
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.instant import Instant, to_datetime
from noetl.kernel.scope import Scope
from noetl.ports.vault import Vault
from noetl.wire.locked_credential import context_of, opened, plain_of

_KEY_COLUMNS = ("tenant_id", "organization_id", "name")
_KEPT_COLUMNS = ("id", "created_at")
_VALUE_COLUMNS = (
    "type",
    "data_encrypted",
    "key_id",
    "description",
    "tags",
    "meta",
    "updated_at",
)
_COLUMNS = (*_KEY_COLUMNS, *_KEPT_COLUMNS, *_VALUE_COLUMNS)
_ENTRY = "id, name, type, description, tags, meta, created_at, updated_at"
_UPSERT = f"""
INSERT INTO noetl.credential ({", ".join(_COLUMNS)})
VALUES ({", ".join(f"${at}" for at in range(1, len(_COLUMNS) + 1))})
ON CONFLICT ({", ".join(_KEY_COLUMNS)}) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in _VALUE_COLUMNS)}
RETURNING {_ENTRY}"""
# A name goes first, should one look like the id of another credential.
_BY_NAME_OR_ID = """
FROM noetl.credential WHERE tenant_id = $1 AND organization_id = $2 AND (name = $3 OR id = $4)
ORDER BY name = $3 DESC LIMIT 1"""
_GET = f"SELECT name, type, data_encrypted {_BY_NAME_OR_ID}"
_REMOVE = f"DELETE FROM noetl.credential WHERE id = (SELECT id {_BY_NAME_OR_ID})"
_LIST = f"""
SELECT {_ENTRY} FROM noetl.credential
WHERE tenant_id = $1 AND organization_id = $2 AND type = coalesce($3, type) ORDER BY name"""


class PostgresCredentialStore:
    def __init__(
        self,
        pool: PostgresPool,
        vault: Vault,
        clock: Callable[[], Instant],
        new_id: Callable[[], str],
        *,
        owns_pool: bool = False,
    ) -> None:
        self._pool = pool
        self._vault = vault
        self._clock = clock
        self._new_id = new_id
        self._owns_pool = owns_pool

    @classmethod
    async def open(
        cls,
        where: PostgresPool | str,
        vault: Vault,
        clock: Callable[[], Instant],
        new_id: Callable[[], str],
    ) -> "PostgresCredentialStore":
        pool, owns_pool = await ready_pool(where, StoreUnavailable)
        return cls(pool, vault, clock, new_id, owns_pool=owns_pool)

    async def put(self, scope: Scope, credential: NewCredential) -> CredentialEntry:
        row = self._row(scope, credential)
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                kept = await connection.fetchrow(_UPSERT, *row)
        assert kept is not None  # what RETURNING promises
        return _entry(kept)

    async def get(self, scope: Scope, name_or_id: str) -> OpenCredential | None:
        if not is_key(name_or_id):
            return None
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                row = await connection.fetchrow(_GET, *scope, name_or_id, number(name_or_id))
        if row is None:
            return None
        name, type_, locked = row
        return opened(name, type_, self._vault.unlock(locked, context_of(scope, name, type_)))

    async def list(self, scope: Scope, *, type: str | None = None) -> list[CredentialEntry]:
        if type is not None and not is_key(type):
            return []
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                return [_entry(row) for row in await connection.fetch(_LIST, *scope, type)]

    async def remove(self, scope: Scope, name_or_id: str) -> bool:
        if not is_key(name_or_id):
            return False
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                status = await connection.execute(_REMOVE, *scope, name_or_id, number(name_or_id))
        return status == "DELETE 1"

    async def close(self) -> None:
        if self._owns_pool:
            await self._pool.close()

    def _row(self, scope: Scope, credential: NewCredential) -> Row:
        name = checked_key(credential.name, "the credential's name")
        type_ = checked_key(credential.type, "the credential's type")
        description = credential.description
        canonical_json.check_plain(credential.meta, "meta")
        now = to_datetime(self._clock())
        return (
            *scope,
            name,
            int(self._new_id()),
            now,
            type_,
            self._vault.lock(plain_of(credential), context_of(scope, name, type_)),
            self._vault.key_id,
            None if description is None else shown_text(description),
            [shown_text(tag) for tag in credential.tags],
            canonical_json.encode(credential.meta).decode(),
            now,
        )


def _entry(row: asyncpg.Record) -> CredentialEntry:
    return CredentialEntry(
        id=str(row["id"]),
        name=row["name"],
        type=row["type"],
        description=row["description"],
        tags=tuple(row["tags"]),
        meta=msgspec.json.decode(row["meta"]),
        created_at=instant(row["created_at"]),
        updated_at=instant(row["updated_at"]),
    )
