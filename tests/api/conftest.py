"""Every test here has a server of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.bootstrap.settings import Settings
from tests.api.running import Api, running_api


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), worker_slots=8, drain_seconds=0)


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    async with running_api(settings) as running:
        yield running
