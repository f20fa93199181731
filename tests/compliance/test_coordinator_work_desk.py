"""The coordinator's own desk keeps the promises of a desk, whatever the log is in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.testing.compliance.work_desk import WorkDeskCompliance
from tests.unit.runtime.desk_scene import Scene


class TestOnMemory(WorkDeskCompliance):
    @pytest.fixture
    def office(self) -> Scene:
        return Scene()


class TestOnSqlite(WorkDeskCompliance):
    @pytest.fixture
    async def office(self, tmp_path: Path) -> AsyncIterator[Scene]:
        file = SqliteFile(tmp_path / "log.db")
        scene = Scene()
        scene.log = await SqliteEventLog.open(file, scene.clock.now)
        scene.rebuild()
        yield scene
        await scene.coordinator.drain()
        await file.close()
