"""Connections to the databases of playbooks: one pool per address, user and options."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from noetl.tools.credential_fields import PostgresFields
from noetl.tools.failures import failed
from noetl.tools.postgres_failures import DRIVER_ERRORS
from noetl.tools.postgres_values import Session, set_codecs

POOLS_MAX = 32
CONNECTIONS = 10
CONNECTIONS_MAX = 100
CONNECT_SECONDS_MAX = 10.0
ACQUIRE_SECONDS = 30.0
IDLE_SECONDS = 60.0
CLOSE_SECONDS_MAX = 10.0

Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"


class PoolOptions(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""  # of two pools with one address
    min_size: int = 0
    max_size: int = CONNECTIONS
    timeout: float = ACQUIRE_SECONDS
    max_waiting: int = 0  # 0: no limit
    max_idle: float = IDLE_SECONDS


def pool_options(given: Any) -> PoolOptions:
    """Unknown options are left alone: other engines have more of them."""
    known = given if isinstance(given, Mapping) else {}
    known = {name: value for name, value in known.items() if value is not None}
    try:
        options = msgspec.convert(known, PoolOptions, strict=False)
    except msgspec.ValidationError as error:
        raise failed("client_error", f"`pool` is not as it should be: {error}") from None
    if not 1 <= options.max_size <= CONNECTIONS_MAX:
        raise failed("client_error", f"`pool.max_size` is not between 1 and {CONNECTIONS_MAX}")
    return msgspec.structs.replace(
        options, min_size=min(max(options.min_size, 0), options.max_size)
    )


class _Pool:
    """One address. Opens when first used."""

    def __init__(self, fields: PostgresFields, options: PoolOptions) -> None:
        self.users = 0
        self.options = options
        self._fields = fields
        self._waiting = 0
        self._opening = asyncio.Lock()
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    async def acquire(self) -> tuple["asyncpg.Pool[asyncpg.Record]", Connection]:
        limit = self.options.max_waiting
        if limit and self._waiting >= limit:
            raise failed(
                "db_connection",
                f"{limit} calls wait for a connection already; raise `pool.max_waiting`"
                " or `pool.max_size`, or try again",
            )
        self._waiting += 1
        try:
            pool = self._pool or await self._open()
            return pool, await pool.acquire(timeout=self.options.timeout)
        except TimeoutError:
            raise failed(
                "db_connection",
                f"no connection to {self._fields.host}:{self._fields.port} was free within"
                f" {self.options.timeout:g} s; raise `pool.max_size`, or try again",
            ) from None
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    async def _open(self) -> "asyncpg.Pool[asyncpg.Record]":
        fields, options = self._fields, self.options
        settings = {"application_name": "noetl"}
        if fields.schema:
            settings["search_path"] = fields.schema
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    host=fields.host,
                    port=fields.port,
                    user=fields.user,
                    # Not None: the driver would look into files of whoever runs this program.
                    password=fields.password or "",
                    database=fields.database,
                    ssl=fields.sslmode,
                    server_settings=settings,
                    min_size=options.min_size,
                    max_size=options.max_size,
                    timeout=CONNECT_SECONDS_MAX,
                    max_inactive_connection_lifetime=options.max_idle,
                    # Rendered SQL is never the same twice, and its tables may change between calls.
                    statement_cache_size=0,
                    init=set_codecs,
                    reset=_forget_session,
                )
            return self._pool


class PostgresPools:
    """Keeps the pools that were used last. One that is in use is never closed."""

    def __init__(self, pools_max: int = POOLS_MAX) -> None:
        self._pools_max = pools_max
        self._pools: OrderedDict[tuple[bytes, bytes], _Pool] = OrderedDict()

    @asynccontextmanager
    async def session(
        self, fields: PostgresFields, options: PoolOptions
    ) -> AsyncIterator[Connection]:
        """A connection whose session nobody else has touched."""
        key = (msgspec.json.encode(fields), msgspec.json.encode(options))
        pool = self._pools.setdefault(key, _Pool(fields, options))
        self._pools.move_to_end(key)
        pool.users += 1
        try:
            opened, connection = await pool.acquire()
            try:
                yield connection
            finally:
                with suppress(*DRIVER_ERRORS):  # a connection that died has left by itself
                    await opened.release(connection)
        finally:
            pool.users -= 1
            await self._close_surplus()

    async def close(self) -> None:
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.close()

    async def _close_surplus(self) -> None:
        idle = [key for key, pool in self._pools.items() if pool.users == 0]
        surplus = max(0, len(self._pools) - self._pools_max)
        for pool in [self._pools.pop(key) for key in idle[:surplus]]:
            await pool.close()


async def _forget_session(session: Session) -> None:
    """Settings, temporary tables and locks of one call are nothing to the next."""
    await session.execute("DISCARD ALL")
