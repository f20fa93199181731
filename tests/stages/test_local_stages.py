"""Stages on the workers of the process itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from tests.stages.stage_suite import StageSuite


class TestLocalStages(StageSuite):
    engine_name = "local"

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
            yield engine
