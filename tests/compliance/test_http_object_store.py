"""Objects through a server keep the promises of the store behind it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from noetl.bootstrap.settings import Settings
from noetl.client.connection import Connection
from noetl.client.object_store import HttpObjectStore
from noetl.kernel.errors import SettingInvalid, StoreUnavailable
from noetl.ports.object_store import ObjectStore
from noetl.testing.bounded_memory import MIB
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.object_store_keys import KEY, whole
from noetl.testing.compliance.payload_store import PayloadStoreCompliance
from tests.api.running import Api, running_api


class ThroughAServer:
    @pytest.fixture
    async def api(self, tmp_path: Path) -> AsyncIterator[Api]:
        settings = Settings(home=str(tmp_path / "home"))
        async with running_api(settings, has_worker=False) as api:
            yield api

    @pytest.fixture
    async def connection(self, api: Api) -> AsyncIterator[Connection]:
        connection = Connection(api.address, api.internal_key)
        yield connection
        await connection.close()

    @pytest.fixture
    def reopened(self, connection: Connection) -> Callable[[], ObjectStore]:
        return lambda: HttpObjectStore(connection)

    @pytest.fixture
    def object_store(self, reopened: Callable[[], ObjectStore]) -> ObjectStore:
        return reopened()

    @pytest.fixture
    def large_bytes(self) -> int:
        return 96 * MIB


class TestHttpObjectStore(ThroughAServer, ObjectStoreCompliance):
    async def test_without_the_key_of_workers_nothing_is_given(self, api: Api) -> None:
        connection = Connection(api.address)
        with pytest.raises(SettingInvalid, match="internal key"):
            await HttpObjectStore(connection).create(KEY, b"x")
        await connection.close()

    async def test_a_server_that_is_gone_is_a_store_that_is_away(self) -> None:
        connection = Connection("http://127.0.0.1:9")
        with pytest.raises(StoreUnavailable, match="is the server running"):
            await whole(HttpObjectStore(connection))
        await connection.close()


class TestHttpPayloads(ThroughAServer, PayloadStoreCompliance):
    pass
