"""The production log keeps every promise."""

from collections.abc import AsyncIterator

import pytest

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.system.clock import utc_now
from noetl.ports.event_log import EventLog
from noetl.testing.compliance.event_log import EventLogCompliance, Reopen


@pytest.mark.servers
class TestPostgresEventLog(EventLogCompliance):
    @pytest.fixture
    async def event_log(self, postgres_dsn: str) -> AsyncIterator[EventLog]:
        log = await PostgresEventLog.open(postgres_dsn, utc_now)
        yield log
        await log.close()

    @pytest.fixture
    async def reopen(self, postgres_dsn: str) -> AsyncIterator[Reopen]:
        opened: list[EventLog] = []

        async def opened_again(log: EventLog) -> EventLog:
            await log.close()
            opened.append(await PostgresEventLog.open(postgres_dsn, utc_now))
            return opened[-1]

        yield opened_again
        for log in opened:
            await log.close()
