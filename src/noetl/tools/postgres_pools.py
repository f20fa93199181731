"""Connections to the databases of playbooks: one pool per address, user and options."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

import asyncpg
import msgspec

from noetl.tools.credential_fields import PostgresFields
from noetl.tools.deadlines import Deadlines
from noetl.tools.failures import failed
from noetl.tools.postgres_failures import DRIVER_ERRORS
from noetl.tools.postgres_session import KnownTexts, PostgresSession
from noetl.tools.postgres_values import Session, set_codecs

POOLS_MAX = 32
CONNECTIONS = 10
CONNECTIONS_MAX = 100
CONNECT_SECONDS_MAX = 10.0
ACQUIRE_SECONDS = 30.0
IDLE_SECONDS = 60.0
CLOSE_SECONDS_MAX = 10.0


class PoolOptions(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""  # of two pools with one address
    min_size: int = 0
    max_size: int = CONNECTIONS
    timeout: float = ACQUIRE_SECONDS
    max_waiting: int = 0  # 0: no limit
    max_idle: float = IDLE_SECONDS


def pool_options(given: Any) -> PoolOptions:
    """Unknown options are left alone: other engines have more of them."""
    if given is None:
        return _USUAL_OPTIONS
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


_USUAL_OPTIONS: Final = PoolOptions()


class _Pool:
    """One address. A connection is opened when all others are in use, up to a bound."""

    def __init__(self, fields: PostgresFields, options: PoolOptions, deadlines: Deadlines) -> None:
        self.users = 0
        self._deadlines = deadlines
        self.options = options
        self._fields = fields
        self._waiting = 0
        self._free = asyncio.Semaphore(options.max_size)
        self._idle: list[tuple[PostgresSession, float]] = []  # and since when
        self._sweep: asyncio.TimerHandle | None = None
        self._texts = KnownTexts()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_begun = False

    async def acquire(self) -> PostgresSession:
        limit = self.options.max_waiting
        if limit and self._waiting >= limit:
            raise failed(
                "db_connection",
                f"{limit} calls wait for a connection already; raise `pool.max_waiting`"
                " or `pool.max_size`, or try again",
            )
        if self._idle and not self._free.locked():
            await self._free.acquire()  # at once
            if (session := self._open_idle()) is not None:
                return session
            self._free.release()
        self._waiting += 1
        try:
            with self._deadlines.within(self.options.timeout):
                return await self._taken()
        except TimeoutError:
            raise failed(
                "db_connection",
                f"no connection to {self._fields.host}:{self._fields.port} was free within"
                f" {self.options.timeout:g} s; raise `pool.max_size`, or try again",
            ) from None
        finally:
            self._waiting -= 1

    async def release(self, session: PostgresSession, *, is_sound: bool) -> None:
        """Only what may take its time can be left half done by a cancellation."""
        if is_sound and not session.is_suspect and not session.connection.is_closed():
            self._keep(session)
            self._free.release()
        else:
            await asyncio.shield(self._cleaned(session, is_sound=is_sound))

    async def _cleaned(self, session: PostgresSession, *, is_sound: bool) -> None:
        connection = session.connection
        try:
            if is_sound and not connection.is_closed():
                await session.clean()
                self._keep(session)
            else:
                await connection.close(timeout=CLOSE_SECONDS_MAX)  # what it ran ends before
        except (*DRIVER_ERRORS, TimeoutError):
            connection.terminate()
        finally:
            self._free.release()

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        while self._idle:
            session, _ = self._idle.pop()
            await _end(session)
        await asyncio.gather(*self._closing)

    async def _taken(self) -> PostgresSession:
        await self._free.acquire()
        try:
            if not self._is_begun:
                await self._begin()
            return self._open_idle() or await self._opened()
        except BaseException:
            self._free.release()
            raise

    async def _begin(self) -> None:
        self._is_begun = True
        for _ in range(self.options.min_size - 1):
            self._keep(await self._opened())

    def _open_idle(self) -> PostgresSession | None:
        """The one that was used last: the others may grow old."""
        while self._idle:
            session, _ = self._idle.pop()
            if not session.connection.is_closed():
                return session
        return None

    def _keep(self, session: PostgresSession) -> None:
        self._idle.append((session, asyncio.get_running_loop().time()))
        if self._sweep is None and self.options.max_idle > 0:
            self._sweep_later(self.options.max_idle)

    def _sweep_later(self, seconds: float) -> None:
        self._sweep = asyncio.get_running_loop().call_later(seconds, self._close_old)

    def _close_old(self) -> None:
        self._sweep = None
        too_old = asyncio.get_running_loop().time() - self.options.max_idle
        for session, since in self._idle:
            if since <= too_old:
                ending = asyncio.ensure_future(_end(session))
                self._closing.add(ending)
                ending.add_done_callback(self._closing.discard)
        self._idle = [each for each in self._idle if each[1] > too_old]
        if self._idle:
            self._sweep_later(self._idle[0][1] - too_old)

    async def _opened(self) -> PostgresSession:
        fields = self._fields
        settings = {"application_name": "noetl"}
        if fields.schema:
            settings["search_path"] = fields.schema
        connection: Session = await asyncpg.connect(
            host=fields.host,
            port=fields.port,
            user=fields.user,
            # Not None: the driver would look into files of whoever runs this program.
            password=fields.password or "",
            database=fields.database,
            ssl=fields.sslmode,
            server_settings=settings,
            timeout=CONNECT_SECONDS_MAX,
            statement_cache_size=0,  # the session keeps those that are worth it
        )
        try:
            await set_codecs(connection)
        except BaseException:
            connection.terminate()
            raise
        return PostgresSession(connection, self._texts)


async def _end(session: PostgresSession) -> None:
    try:
        await session.connection.close(timeout=CLOSE_SECONDS_MAX)
    except (*DRIVER_ERRORS, TimeoutError):
        session.connection.terminate()


class _Turn:
    """One call's turn in a pool: as a context, it has a connection and gives it back."""

    __slots__ = ("_pool", "_pools", "_session")

    def __init__(self, pools: "PostgresPools", pool: _Pool) -> None:
        self._pools = pools
        self._pool = pool

    async def __aenter__(self) -> PostgresSession:
        self._pool.users += 1
        try:
            self._session = await self._pool.acquire()
        except BaseException:
            await self._leave()
            raise
        return self._session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        is_sound = kind is None or issubclass(kind, Exception)
        if kind is not None and is_sound:
            self._session.is_suspect = True
        try:
            await self._pool.release(self._session, is_sound=is_sound)
        finally:
            await self._leave()

    async def _leave(self) -> None:
        self._pool.users -= 1
        if self._pools.has_surplus:
            await self._pools.close_surplus()


class PostgresPools:
    """Keeps the pools that were used last. One that is in use is never closed."""

    def __init__(self, pools_max: int = POOLS_MAX) -> None:
        self._pools_max = pools_max
        self._pools: OrderedDict[tuple[PostgresFields, PoolOptions], _Pool] = OrderedDict()
        self._deadlines = Deadlines()

    def session(self, fields: PostgresFields, options: PoolOptions) -> _Turn:
        """A connection in which nobody else has left anything."""
        key = (fields, options)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = _Pool(fields, options, self._deadlines)
        else:
            self._pools.move_to_end(key)
        return _Turn(self, pool)

    @property
    def has_surplus(self) -> bool:
        return len(self._pools) > self._pools_max

    async def close(self) -> None:
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.close()
        self._deadlines.close()

    async def close_surplus(self) -> None:
        idle = [key for key, pool in self._pools.items() if pool.users == 0]
        surplus = max(0, len(self._pools) - self._pools_max)
        for pool in [self._pools.pop(key) for key in idle[:surplus]]:
            await pool.close()
