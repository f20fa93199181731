"""One real NATS server for all tests that ask for it, and names that no other test uses."""

import secrets
import shutil
from collections.abc import AsyncIterator, Iterator

import nats
import pytest
from nats.js import JetStreamContext

from noetl.domain.credential import OpenCredential
from noetl.servers.nats import NatsServer


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    data_dir = tmp_path_factory.mktemp("nats")
    with NatsServer(data_dir) as server:
        yield server
    shutil.rmtree(data_dir)  # pytest would keep it for three sessions


@pytest.fixture
def nats_credential(nats_server: NatsServer) -> OpenCredential:
    data = {
        "nats_url": nats_server.url,
        "nats_user": nats_server.user,
        "nats_password": nats_server.password,
    }
    return OpenCredential(name="nats_e2e", type="nats", data=data)


@pytest.fixture
def fresh_name() -> str:
    """For a bucket or a stream of this test's own."""
    return f"test_{secrets.token_hex(8)}"


@pytest.fixture
async def jetstream(nats_server: NatsServer) -> AsyncIterator[JetStreamContext]:
    """A client that knows nothing of us."""
    connection = await nats.connect(
        nats_server.url, user=nats_server.user, password=nats_server.password
    )
    yield connection.jetstream()
    await connection.close()
