"""CredentialStore on SQLite: the file holds locked bytes only."""

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.domain.credential import CredentialEntry, NewCredential, OpenCredential
from noetl.kernel import canonical_json
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.vault import Vault
from noetl.wire.locked_credential import context_of, opened, plain_of

_SCHEMA = """
CREATE TABLE IF NOT EXISTS credential (
    id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    data_encrypted BLOB NOT NULL,
    key_id TEXT NOT NULL,
    description TEXT,
    tags TEXT NOT NULL,
    meta TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, name)
);
CREATE UNIQUE INDEX IF NOT EXISTS uidx_credential_id ON credential (id);
"""
_ENTRY = "id, name, type, description, tags, meta, created_at, updated_at"
_UPSERT = f"""
INSERT INTO credential VALUES ({", ".join("?" * 12)})
ON CONFLICT (tenant_id, organization_id, name) DO UPDATE SET
    type = excluded.type,
    data_encrypted = excluded.data_encrypted,
    key_id = excluded.key_id,
    description = excluded.description,
    tags = excluded.tags,
    meta = excluded.meta,
    updated_at = excluded.updated_at
RETURNING {_ENTRY}"""
# A name goes first, should one look like the id of another credential.
_BY_NAME_OR_ID = """
FROM credential WHERE tenant_id = ?1 AND organization_id = ?2 AND (name = ?3 OR id = ?3)
ORDER BY name = ?3 DESC LIMIT 1"""
_GET = f"SELECT name, type, data_encrypted {_BY_NAME_OR_ID}"
_REMOVE = f"DELETE FROM credential WHERE rowid = (SELECT rowid {_BY_NAME_OR_ID})"
_LIST = f"""
SELECT {_ENTRY} FROM credential
WHERE tenant_id = ?1 AND organization_id = ?2 AND type = coalesce(?3, type) ORDER BY name"""


class SqliteCredentialStore:
    def __init__(
        self,
        file: SqliteFile,
        vault: Vault,
        clock: Callable[[], Instant],
        new_id: Callable[[], str],
    ) -> None:
        self._file = file
        self._vault = vault
        self._clock = clock
        self._new_id = new_id

    @classmethod
    async def open(
        cls,
        file: SqliteFile,
        vault: Vault,
        clock: Callable[[], Instant],
        new_id: Callable[[], str],
    ) -> "SqliteCredentialStore":
        await file.migrate(_SCHEMA)
        return cls(file, vault, clock, new_id)

    async def put(self, scope: Scope, credential: NewCredential) -> CredentialEntry:
        row = self._row(scope, credential)

        def upsert(connection: sqlite3.Connection) -> CredentialEntry:
            (kept,) = connection.execute(_UPSERT, row).fetchall()
            return _entry(kept)

        return await self._file.write(upsert)

    async def get(self, scope: Scope, name_or_id: str) -> OpenCredential | None:
        arguments = (*scope, name_or_id)
        row = await self._file.read(
            lambda connection: connection.execute(_GET, arguments).fetchone()
        )
        if row is None:
            return None
        name, type_, locked = row
        return opened(name, type_, self._vault.unlock(locked, context_of(scope, name, type_)))

    async def list(self, scope: Scope, *, type: str | None = None) -> list[CredentialEntry]:
        arguments = (*scope, type)
        return await self._file.read(
            lambda connection: [_entry(row) for row in connection.execute(_LIST, arguments)]
        )

    async def remove(self, scope: Scope, name_or_id: str) -> bool:
        arguments = (*scope, name_or_id)
        removed = await self._file.write(
            lambda connection: connection.execute(_REMOVE, arguments).rowcount
        )
        return removed == 1

    async def close(self) -> None:
        """Nothing to let go of: the file belongs to whoever opened it."""

    def _row(self, scope: Scope, credential: NewCredential) -> tuple[str | bytes | None, ...]:
        canonical_json.check_plain(credential.meta, "meta")
        context = context_of(scope, credential.name, credential.type)
        now = self._clock()
        return (
            self._new_id(),
            *scope,
            credential.name,
            credential.type,
            self._vault.lock(plain_of(credential), context),
            self._vault.key_id,
            credential.description,
            canonical_json.encode(credential.tags).decode(),
            canonical_json.encode(credential.meta).decode(),
            now,
            now,
        )


def _entry(row: tuple[Any, ...]) -> CredentialEntry:
    return CredentialEntry(
        id=row[0],
        name=row[1],
        type=row[2],
        description=row[3],
        tags=tuple(msgspec.json.decode(row[4])),
        meta=msgspec.json.decode(row[5]),
        created_at=row[6],
        updated_at=row[7],
    )
