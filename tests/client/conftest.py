"""A server of its own for every test, and a connection to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.bootstrap.settings import Settings
from noetl.client.connection import Connection
from tests.api.running import Api, running_api


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), worker_slots=8, drain_seconds=0)


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    async with running_api(settings) as running:
        yield running


@pytest.fixture
async def idle_api(settings: Settings) -> AsyncIterator[Api]:
    """A server that has no worker."""
    async with running_api(settings, has_worker=False) as running:
        yield running


@pytest.fixture
async def connection(api: Api) -> AsyncIterator[Connection]:
    opened = Connection(api.address, api.internal_key)
    yield opened
    await opened.close()
