"""CredentialStore on SQLite keeps every promise."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.encryption.vault import AesVault
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.credential_store import SqliteCredentialStore
from noetl.adapters.system.chance import random_bytes
from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.scope import Scope
from noetl.ports.credential_store import CredentialStore
from noetl.testing.compliance.credential_store import (
    KEY,
    AtRest,
    CredentialStoreCompliance,
    Reopen,
)
from tests.compliance.rising_clock import RisingClock

_OF_ONE = "WHERE tenant_id = ? AND organization_id = ? AND name = ?"


class SqliteAtRest:
    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def contents(self) -> bytes:
        """The file and what lies beside it, among it the journal of what was overwritten."""
        return b"".join(path.read_bytes() for path in self._file.path.parent.iterdir())

    async def locked(self, scope: Scope, name: str) -> bytes:
        def select(connection: sqlite3.Connection) -> bytes:
            sql = f"SELECT data_encrypted FROM credential {_OF_ONE}"
            ((locked,),) = connection.execute(sql, (*scope, name)).fetchall()
            return bytes(locked)

        return await self._file.read(select)

    async def overwrite(self, scope: Scope, name: str, locked: bytes) -> None:
        sql = f"UPDATE credential SET data_encrypted = ? {_OF_ONE}"
        arguments = (locked, *scope, name)
        changed = await self._file.write(
            lambda connection: connection.execute(sql, arguments).rowcount
        )
        assert changed == 1


async def open_store(file: SqliteFile, key: bytes) -> CredentialStore:
    vault = AesVault(key, random_bytes)
    return await SqliteCredentialStore.open(file, vault, RisingClock(), SnowflakeIds(1).new_id)


class TestSqliteCredentialStore(CredentialStoreCompliance):
    @pytest.fixture
    async def file(self, tmp_path: Path) -> AsyncIterator[SqliteFile]:
        file = SqliteFile(tmp_path / "noetl.db")
        yield file
        await file.close()

    @pytest.fixture
    async def credential_store(self, file: SqliteFile) -> CredentialStore:
        return await open_store(file, KEY)

    @pytest.fixture
    async def reopen(self, file: SqliteFile) -> AsyncIterator[Reopen]:
        again = SqliteFile(file.path)

        async def reopen(key: bytes) -> CredentialStore:
            # The first file stays open: its process had no chance to tidy up.
            return await open_store(again, key)

        yield reopen
        await again.close()

    @pytest.fixture
    def at_rest(self, file: SqliteFile) -> AtRest:
        return SqliteAtRest(file)
