"""The embedded log keeps its promises."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.ports.event_log import EventLog
from noetl.testing.compliance.event_log import EventLogCompliance, Reopen


class TestSqliteEventLog(EventLogCompliance):
    @pytest.fixture
    async def files(self, tmp_path: Path) -> AsyncIterator[list[SqliteFile]]:
        opened = [SqliteFile(tmp_path / "log.db")]
        yield opened
        for file in opened:
            await file.close()

    @pytest.fixture
    async def event_log(self, files: list[SqliteFile]) -> EventLog:
        return await SqliteEventLog.open(files[0], utc_now)

    @pytest.fixture
    def reopen(self, files: list[SqliteFile]) -> Reopen:
        async def opened_again(_: EventLog) -> EventLog:
            await files[0].close()
            files.append(SqliteFile(files[0].path))
            return await SqliteEventLog.open(files[-1], utc_now)

        return opened_again
