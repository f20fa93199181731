"""A real NATS server, the tool over it, and names that no other test uses."""

import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js import JetStreamContext

from noetl.domain.credential import OpenCredential
from noetl.servers.nats import NatsServer
from noetl.tools.nats import NatsTool
from tests.tools.tool_calls import KEY, call, services

Run = Callable[..., Awaitable[Any]]


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


@pytest.fixture
async def nats_tool(tmp_path: Path) -> AsyncIterator[NatsTool]:
    opened = NatsTool(services(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
def run_nats(nats_tool: NatsTool, nats_credential: OpenCredential) -> Run:
    async def run_one(operation: str, *, cycle: str = KEY, **parameters: Any) -> Any:
        given = call(
            "nats",
            {"operation": operation, **parameters},
            credentials={"": nats_credential},
            idempotency_key=cycle,
        )
        return (await nats_tool.run(given)).value

    return run_one
