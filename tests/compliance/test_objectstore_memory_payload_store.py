"""The object store adapter on the driver's own memory: no server, same code."""

import obstore
import pytest
from obstore.store import MemoryStore

from noetl.adapters.objectstore.payload_store import ObjectStorePayloadStore
from noetl.domain.payload import PayloadReference, payload_key
from noetl.testing.compliance.payload_store import Damage, PayloadStoreCompliance


class TestObjectStoreMemoryPayloadStore(PayloadStoreCompliance):
    @pytest.fixture
    def driver(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def payload_store(self, driver: MemoryStore) -> ObjectStorePayloadStore:
        return ObjectStorePayloadStore(driver)

    @pytest.fixture
    def damage(self, driver: MemoryStore) -> Damage:
        async def overwrite(reference: PayloadReference, data: bytes) -> None:
            key = payload_key(reference.scope, reference.sha256)
            await obstore.put_async(driver, key, data)

        return overwrite

    @pytest.fixture
    def large_bytes(self) -> int:
        pytest.skip("B4: the payloads are in memory")
