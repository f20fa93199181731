"""Logs by address, opened alike by the process that writes and by the one that checks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.ports.event_log import EventLog

POSTGRES = "postgresql://"


@asynccontextmanager
async def opened_log(address: str) -> AsyncIterator[EventLog]:
    """On PostgreSQL for its kind of address, else in the SQLite file of that name."""
    if address.startswith(POSTGRES):
        log = await PostgresEventLog.open(address, utc_now)
        try:
            yield log
        finally:
            await log.close()
    else:
        file = SqliteFile(address)
        try:
            yield await SqliteEventLog.open(file, utc_now)
        finally:
            await file.close()
