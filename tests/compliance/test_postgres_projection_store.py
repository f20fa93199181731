"""ProjectionStore on PostgreSQL keeps every promise."""

from collections.abc import AsyncIterator

import pytest

from noetl.adapters.postgres.projection_store import PostgresProjectionStore
from noetl.adapters.system.clock import utc_now
from noetl.ports.projection_store import ProjectionStore
from noetl.testing.compliance.projection_store import ProjectionStoreCompliance, Reopen


@pytest.mark.servers
class TestPostgresProjectionStore(ProjectionStoreCompliance):
    @pytest.fixture
    async def projection_store(self, postgres_dsn: str) -> AsyncIterator[ProjectionStore]:
        store = await PostgresProjectionStore.open(postgres_dsn, utc_now)
        yield store
        await store.close()

    @pytest.fixture
    async def reopen(self, postgres_dsn: str) -> AsyncIterator[Reopen]:
        opened: list[ProjectionStore] = []

        async def opened_again(_: ProjectionStore) -> ProjectionStore:
            # The first store stays open: its process had no chance to tidy up.
            opened.append(await PostgresProjectionStore.open(postgres_dsn, utc_now))
            return opened[-1]

        yield opened_again
        for store in opened:
            await store.close()
