"""SnapshotStore on PostgreSQL keeps every promise."""

from collections.abc import AsyncIterator

import pytest

from noetl.adapters.postgres.snapshot_store import PostgresSnapshotStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.testing.compliance.snapshot_store import SnapshotStoreCompliance


@pytest.mark.servers
class TestPostgresSnapshotStore(SnapshotStoreCompliance):
    @pytest.fixture
    async def snapshot_store(self, postgres_dsn: str) -> AsyncIterator[SnapshotStore]:
        store = await PostgresSnapshotStore.open(postgres_dsn)
        yield store
        await store.close()
