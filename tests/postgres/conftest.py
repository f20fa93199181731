"""Logs and bare connections over the test's own database, closed when the test is over."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.system.clock import utc_now

OpenLog = Callable[..., Awaitable[PostgresEventLog]]


@pytest.fixture
async def open_log(postgres_dsn: str) -> AsyncIterator[OpenLog]:
    """Opens a log with a pool of its own, as another process would."""
    opened: list[PostgresEventLog] = []

    async def open_one(**options: Any) -> PostgresEventLog:
        where = options.pop("dsn", postgres_dsn)
        clock = options.pop("clock", utc_now)
        opened.append(await PostgresEventLog.open(where, clock, **options))
        return opened[-1]

    yield open_one
    for log in opened:
        await log.close()


@pytest.fixture
async def sql(postgres_dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A session that knows nothing of us."""
    connection = await asyncpg.connect(postgres_dsn)
    yield connection
    await connection.close()
