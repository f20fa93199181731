"""The reference adapter keeps every promise that memory can keep."""

import pytest

from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.ports.projection_store import ProjectionStore
from noetl.testing.compliance.projection_store import ProjectionStoreCompliance, Reopen


class TestMemoryProjectionStore(ProjectionStoreCompliance):
    @pytest.fixture
    def projection_store(self) -> ProjectionStore:
        return MemoryProjectionStore()

    @pytest.fixture
    def reopen(self) -> Reopen:
        pytest.skip("P6: memory forgets when its process dies; read models are then rebuilt")
