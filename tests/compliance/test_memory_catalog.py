"""The reference adapter keeps every promise that memory can keep."""

import pytest

from noetl.adapters.memory.catalog import MemoryCatalog
from noetl.adapters.system.clock import utc_now
from noetl.adapters.system.ids import SnowflakeIds
from noetl.ports.catalog import Catalog
from noetl.testing.compliance.catalog import CatalogCompliance, Reopen


class TestMemoryCatalog(CatalogCompliance):
    @pytest.fixture
    def catalog(self) -> Catalog:
        return MemoryCatalog(utc_now, SnowflakeIds(1).new_id)

    @pytest.fixture
    def reopen(self) -> Reopen:
        pytest.skip("C6: memory forgets when its process dies")
