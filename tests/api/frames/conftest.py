"""A server without workers of its own, and two of another make for it."""

from collections.abc import AsyncIterator

import pytest

from noetl.bootstrap.settings import Settings
from tests.api.frames.foreign import Foreign
from tests.api.running import Api, running_api


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    """Nobody works here but whom the test brings."""
    async with running_api(settings, has_worker=False) as running:
        yield running


@pytest.fixture
def anna(api: Api) -> Foreign:
    return Foreign(api, "anna")


@pytest.fixture
def bert(api: Api) -> Foreign:
    return Foreign(api, "bert")
