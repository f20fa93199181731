"""CredentialStore on PostgreSQL keeps every promise."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from noetl.adapters.encryption.vault import AesVault
from noetl.adapters.postgres.credential_store import PostgresCredentialStore
from noetl.adapters.postgres.key_text import KEY_BYTES_MAX
from noetl.adapters.system.chance import random_bytes
from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.errors import RequestInvalid
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.credential_store import CredentialStore
from noetl.testing.compliance.credential_store import (
    KEY,
    AtRest,
    CredentialStoreCompliance,
    Reopen,
    new_credential,
)
from tests.compliance.rising_clock import RisingClock

_OF_ONE = "WHERE tenant_id = $1 AND organization_id = $2 AND name = $3"


class PostgresAtRest:
    def __init__(self, sql: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._sql = sql

    async def contents(self) -> bytes:
        rows = await self._sql.fetch("SELECT * FROM noetl.credential")
        values = [value for row in rows for value in row.values()]
        return b"\n".join(
            value if isinstance(value, bytes) else str(value).encode() for value in values
        )

    async def locked(self, scope: Scope, name: str) -> bytes:
        sql = f"SELECT data_encrypted FROM noetl.credential {_OF_ONE}"
        return bytes(await self._sql.fetchval(sql, *scope, name))

    async def overwrite(self, scope: Scope, name: str, locked: bytes) -> None:
        sql = f"UPDATE noetl.credential SET data_encrypted = $4 {_OF_ONE}"
        assert await self._sql.execute(sql, *scope, name, locked) == "UPDATE 1"


async def open_store(dsn: str, key: bytes) -> CredentialStore:
    vault = AesVault(key, random_bytes)
    return await PostgresCredentialStore.open(dsn, vault, RisingClock(), SnowflakeIds(1).new_id)


@pytest.mark.servers
class TestPostgresCredentialStore(CredentialStoreCompliance):
    @pytest.fixture
    async def credential_store(self, postgres_dsn: str) -> AsyncIterator[CredentialStore]:
        store = await open_store(postgres_dsn, KEY)
        yield store
        await store.close()

    @pytest.fixture
    async def reopen(self, postgres_dsn: str) -> AsyncIterator[Reopen]:
        opened: list[CredentialStore] = []

        async def opened_again(key: bytes) -> CredentialStore:
            # The first store stays open: its process had no chance to tidy up.
            opened.append(await open_store(postgres_dsn, key))
            return opened[-1]

        yield opened_again
        for store in opened:
            await store.close()

    @pytest.fixture
    async def at_rest(self, postgres_dsn: str) -> AsyncIterator[AtRest]:
        connection = await asyncpg.connect(postgres_dsn)
        yield PostgresAtRest(connection)
        await connection.close()

    @pytest.mark.parametrize("name", ["db\0", "x" * (KEY_BYTES_MAX + 1)])
    async def test_a_name_that_the_database_cannot_keep_is_refused(
        self, credential_store: CredentialStore, name: str
    ) -> None:
        with pytest.raises(RequestInvalid, match="name"):
            await credential_store.put(DEFAULT_SCOPE, new_credential(name))
