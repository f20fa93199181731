"""The reference adapter keeps every promise that memory can keep."""

import pytest

from noetl.adapters.memory.payload_store import MemoryPayloadStore
from noetl.domain.payload import PayloadReference, payload_key
from noetl.testing.compliance.payload_store import Damage, PayloadStoreCompliance


class TestMemoryPayloadStore(PayloadStoreCompliance):
    @pytest.fixture
    def payload_store(self) -> MemoryPayloadStore:
        return MemoryPayloadStore()

    @pytest.fixture
    def damage(self, payload_store: MemoryPayloadStore) -> Damage:
        async def overwrite(reference: PayloadReference, data: bytes) -> None:
            payload_store._objects[payload_key(reference.scope, reference.sha256)] = data

        return overwrite

    @pytest.fixture
    def large_bytes(self) -> int:
        pytest.skip("B4: the payloads are in memory")
