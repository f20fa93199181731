"""Catalog on PostgreSQL keeps every promise."""

from collections.abc import AsyncIterator

import pytest

from noetl.adapters.postgres.catalog import PostgresCatalog
from noetl.adapters.postgres.key_text import KEY_BYTES_MAX
from noetl.adapters.system.clock import utc_now
from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.errors import RequestInvalid
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.catalog import Catalog
from noetl.testing.compliance.catalog import CatalogCompliance, Reopen, new_entry


@pytest.mark.servers
class TestPostgresCatalog(CatalogCompliance):
    @pytest.fixture
    async def catalog(self, postgres_dsn: str) -> AsyncIterator[Catalog]:
        catalog = await PostgresCatalog.open(postgres_dsn, utc_now, SnowflakeIds(1).new_id)
        yield catalog
        await catalog.close()

    @pytest.fixture
    async def reopen(self, postgres_dsn: str) -> AsyncIterator[Reopen]:
        opened: list[Catalog] = []

        async def opened_again() -> Catalog:
            # The first catalogue stays open: its process had no chance to tidy up.
            ids = SnowflakeIds(2)
            opened.append(await PostgresCatalog.open(postgres_dsn, utc_now, ids.new_id))
            return opened[-1]

        yield opened_again
        for catalog in opened:
            await catalog.close()

    @pytest.mark.parametrize("path", ["demo\0", "x" * (KEY_BYTES_MAX + 1), "demo\udc00"])
    async def test_a_path_that_the_database_cannot_keep_is_refused(
        self, catalog: Catalog, path: str
    ) -> None:
        with pytest.raises(RequestInvalid, match="path"):
            await catalog.register(DEFAULT_SCOPE, new_entry(path=path))

    async def test_the_longest_path_fits_the_index(self, catalog: Catalog) -> None:
        path = "ж" * (KEY_BYTES_MAX // 2)

        made = await catalog.register(DEFAULT_SCOPE, new_entry(path=path))

        assert await catalog.find(DEFAULT_SCOPE, path) == made

    async def test_a_character_that_the_database_cannot_keep_is_replaced_in_a_description(
        self, catalog: Catalog
    ) -> None:
        made = await catalog.register(DEFAULT_SCOPE, new_entry(description="two\0words"))

        assert made.description == "two\ufffdwords"
