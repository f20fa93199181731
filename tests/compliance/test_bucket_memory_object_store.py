"""The adapter of buckets on the driver's own memory: no server, same code."""

from collections.abc import Callable

import pytest
from obstore.store import MemoryStore

from noetl.adapters.objectstore.object_store import BucketObjectStore
from noetl.ports.object_store import ObjectStore
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.payload_store import PayloadStoreCompliance


class InDriverMemory:
    @pytest.fixture
    def driver(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def object_store(self, driver: MemoryStore) -> ObjectStore:
        return BucketObjectStore(driver)

    @pytest.fixture
    def large_bytes(self) -> int:
        pytest.skip("O4, B4: the objects are in memory")


class TestBucketMemoryObjectStore(InDriverMemory, ObjectStoreCompliance):
    @pytest.fixture
    def reopened(self, driver: MemoryStore) -> Callable[[], ObjectStore]:
        return lambda: BucketObjectStore(driver)


class TestBucketMemoryPayloads(InDriverMemory, PayloadStoreCompliance):
    pass
