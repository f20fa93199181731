"""The reference adapter keeps every promise that memory can keep."""

from collections.abc import Callable

import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.ports.object_store import ObjectStore
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.payload_store import PayloadStoreCompliance


class InMemory:
    @pytest.fixture
    def object_store(self) -> ObjectStore:
        return MemoryObjectStore()

    @pytest.fixture
    def large_bytes(self) -> int:
        pytest.skip("O4, B4: the objects are in memory")


class TestMemoryObjectStore(InMemory, ObjectStoreCompliance):
    @pytest.fixture
    def reopened(self) -> Callable[[], ObjectStore]:
        pytest.skip("O11: memory ends with the process")


class TestMemoryPayloads(InMemory, PayloadStoreCompliance):
    pass
