"""The reference adapter keeps every promise."""

import pytest

from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.testing.compliance.snapshot_store import SnapshotStoreCompliance


class TestMemorySnapshotStore(SnapshotStoreCompliance):
    @pytest.fixture
    def snapshot_store(self) -> SnapshotStore:
        return MemorySnapshotStore()
