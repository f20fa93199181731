"""The reference adapter keeps every promise that memory can keep."""

import pytest

from noetl.adapters.memory.credential_store import MemoryCredentialStore
from noetl.adapters.system.ids import SnowflakeIds
from noetl.ports.credential_store import CredentialStore
from noetl.testing.compliance.credential_store import AtRest, CredentialStoreCompliance, Reopen
from tests.compliance.rising_clock import RisingClock


class TestMemoryCredentialStore(CredentialStoreCompliance):
    @pytest.fixture
    def credential_store(self) -> CredentialStore:
        return MemoryCredentialStore(RisingClock(), SnowflakeIds(1).new_id)

    @pytest.fixture
    def reopen(self) -> Reopen:
        pytest.skip("K6: memory forgets when its process dies")

    @pytest.fixture
    def at_rest(self) -> AtRest:
        pytest.skip("K2: memory is never at rest")
