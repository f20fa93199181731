"""The one connection pool, and how the stores borrow from it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from noetl.adapters.postgres.failures import DRIVER_ERRORS

CONNECTIONS_MAX = 10
CONNECT_SECONDS_MAX = 10.0
ACQUIRE_SECONDS_MAX = 30.0
COMMAND_SECONDS_MAX = 60.0
CLOSE_SECONDS_MAX = 10.0
STATEMENTS_MAX = 256

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

_SESSION = """
SELECT
    -- What is acknowledged survives a power cut, whatever the role's default is.
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),
    -- A client that froze inside a transaction would hold the append lock of everybody.
    set_config('idle_in_transaction_session_timeout', '30s', false),
    -- Under the lock every statement must see what was committed before it.
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('lock_timeout', '20s', false),
    -- Every statement is short; compiling one would take longer than running it.
    set_config('jit', 'off', false)"""


class PostgresPool:
    """Several stores may share one. Connects when first used, in the loop it is used in."""

    def __init__(self, dsn: str, *, connections_max: int = CONNECTIONS_MAX) -> None:
        self._dsn = dsn
        self._connections_max = connections_max
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._opening = asyncio.Lock()
        self._closed = asyncio.Event()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for one piece of work. What is left uncommitted is rolled back."""
        pool = self._pool or await self._open()
        connection = await pool.acquire(timeout=ACQUIRE_SECONDS_MAX)
        try:
            yield connection
        finally:
            await _give_back(pool, connection)

    async def pause(self, seconds: float) -> None:
        """Wait before asking the server again; closing the pool ends the wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def close(self) -> None:
        """Closing again is not an error."""
        self._closed.set()
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    async def _open(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._opening:
            if self._closed.is_set():
                raise asyncpg.InterfaceError("the pool was closed")
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._dsn,
                    min_size=0,
                    max_size=self._connections_max,
                    timeout=CONNECT_SECONDS_MAX,
                    command_timeout=COMMAND_SECONDS_MAX,
                    statement_cache_size=STATEMENTS_MAX,
                    init=_prepare,
                    reset=_leave_as_it_is,
                )
            return self._pool


async def _give_back(pool: "asyncpg.Pool[asyncpg.Record]", connection: Connection) -> None:
    """Roll back what is open. What fails here must not hide how the work itself ended."""
    with suppress(*DRIVER_ERRORS):  # one that died has left the pool by itself and answers nothing
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")
    with suppress(*DRIVER_ERRORS):
        await pool.release(connection)


async def _prepare(connection: Session) -> None:
    await connection.fetchrow(_SESSION)


async def _leave_as_it_is(_: Session) -> None:
    """No session state is ever left behind, so the driver's reset would be a wasted round trip."""
