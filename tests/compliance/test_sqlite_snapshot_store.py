"""SnapshotStore on SQLite keeps every promise."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.snapshot_store import SqliteSnapshotStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.testing.compliance.snapshot_store import SnapshotStoreCompliance, snapshot


class TestSqliteSnapshotStore(SnapshotStoreCompliance):
    @pytest.fixture
    async def snapshot_store(self, tmp_path: Path) -> AsyncIterator[SnapshotStore]:
        file = SqliteFile(tmp_path / "noetl.db")
        yield await SqliteSnapshotStore.open(file)
        await file.close()


async def test_snapshots_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    saved = snapshot(7)
    for found in ([], [saved]):
        file = SqliteFile(tmp_path / "noetl.db")
        store = await SqliteSnapshotStore.open(file)
        assert await store.candidates(saved.scope, saved.execution_id, at_or_before=7) == found
        await store.save(saved)
        await file.close()
