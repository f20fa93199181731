"""The adapter of buckets on Azurite. Skipped until `make test-azure` has installed it."""

import secrets
from collections.abc import Callable, Iterator

import pytest

from noetl.adapters.objectstore.connect import open_store
from noetl.kernel.errors import StoreUnavailable
from noetl.ports.object_store import ObjectStore
from noetl.testing.bounded_memory import MIB
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.object_store_keys import whole
from noetl.testing.compliance.payload_store import PayloadStoreCompliance
from tests.azurite import AzuriteServer, why_not

REASON = why_not()
pytestmark = [pytest.mark.servers, pytest.mark.skipif(REASON is not None, reason=REASON or "")]


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzuriteServer]:
    with AzuriteServer(tmp_path_factory.mktemp("azurite")) as server:
        yield server


class OnAzure:
    @pytest.fixture
    def reopened(self, azurite: AzuriteServer) -> Callable[[], ObjectStore]:
        name = f"test-{secrets.token_hex(8)}"
        azurite.create_container(name)
        return lambda: open_store(f"az://{name}/some/folder", azurite.config, allow_http=True)

    @pytest.fixture
    def object_store(self, reopened: Callable[[], ObjectStore]) -> ObjectStore:
        return reopened()

    @pytest.fixture
    def large_bytes(self) -> int:
        return 96 * MIB


class TestAzureObjectStore(OnAzure, ObjectStoreCompliance):
    async def test_without_its_container_no_object_is_missing(self, azurite: AzuriteServer) -> None:
        store = open_store("az://no-such-container", azurite.config, allow_http=True)

        with pytest.raises(StoreUnavailable, match="container"):
            await whole(store)


class TestAzurePayloads(OnAzure, PayloadStoreCompliance):
    pass
