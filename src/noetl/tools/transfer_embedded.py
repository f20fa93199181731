"""Databases in this process as ends of a transfer: their calls block, so they run in threads."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from noetl.ports.tool import ToolFailed
from noetl.tools.sql_results import plain
from noetl.tools.transfer_plan import (
    Place,
    Row,
    Source,
    Target,
    TransferPlan,
    on_conflict,
    quoted,
)

Answer = TypeVar("Answer")

INTERRUPT_SECONDS = 0.05


class Cursor(Protocol):
    @property
    def description(self) -> Any: ...

    def fetchmany(self, size: int, /) -> list[Any]: ...


class Connection(Protocol):
    """What sqlite3 and duckdb have in common."""

    def execute(self, statement: str, /) -> Cursor: ...

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> Any: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What the two differ in."""

    open: Callable[[Place], Connection]
    errors: tuple[type[Exception], ...]
    failure: Callable[[Exception, Place], ToolFailed]
    begin: str
    begin_reading: str
    takes: tuple[type, ...]  # types of values that need no conversion


class EmbeddedEndpoints:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @asynccontextmanager
    async def open_source(self, place: Place) -> AsyncIterator[Source]:
        query = place.query()
        async with self._session(place) as session:
            await session.call(lambda: session.connection.execute(self._engine.begin_reading))
            yield _Query(session, query)

    @asynccontextmanager
    async def open_target(self, place: Place, plan: TransferPlan) -> AsyncIterator[Target]:
        table = place.table()
        async with self._session(place) as session:
            connection = session.connection
            await session.call(lambda: connection.execute(self._engine.begin))
            if plan.mode == "replace":
                await session.call(lambda: connection.execute(f"DELETE FROM {table}"))
            yield _Inserts(session, table, plan)
            await session.call(lambda: connection.execute("COMMIT"))

    @asynccontextmanager
    async def _session(self, place: Place) -> AsyncIterator["_Session"]:
        # A thread of its own: one that waits for a lock must not keep its holder from going on.
        with ThreadPoolExecutor(1, "transfer") as thread:
            opened: list[Connection] = []  # also when the call is cancelled while it opens
            try:
                with _translated(self._engine, place):
                    await _run(thread, lambda: opened.append(self._engine.open(place)))
                yield _Session(self._engine, place, opened[0], thread)
            finally:
                for connection in opened:
                    await _run(thread, connection.close)  # undoes what was not committed


class _Session:
    """One connection, and the thread that uses it."""

    def __init__(
        self, engine: Engine, place: Place, connection: Connection, thread: Executor
    ) -> None:
        self.engine = engine
        self.connection = connection
        self._place = place
        self._thread = thread

    async def call(self, work: Callable[[], Answer]) -> Answer:
        with _translated(self.engine, self._place):
            return await _run(self._thread, work, self.connection.interrupt)


async def _run(
    thread: Executor, work: Callable[[], Answer], interrupt: Callable[[], None] | None = None
) -> Answer:
    """What a thread works on must not be closed under it: whoever cancels waits for its end."""
    # Not a task: the end of the event loop would cancel that, and the thread would still run.
    running = asyncio.get_running_loop().run_in_executor(thread, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            if interrupt is not None:
                interrupt()  # again and again: the work may not have begun yet
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running], timeout=INTERRUPT_SECONDS)
        running.exception()  # seen: it is what the interruption brought about
        raise


class _Query:
    def __init__(self, session: _Session, query: str) -> None:
        self._session = session
        self._query = query

    async def chunks(self, size: int) -> AsyncIterator[list[Row]]:
        connection = self._session.connection
        cursor = await self._session.call(lambda: connection.execute(self._query))
        names = [column[0] for column in cursor.description or ()]
        while True:
            rows = await self._session.call(lambda: cursor.fetchmany(size))
            if not rows:
                # A reader would keep a writer to the same file from committing.
                await self._session.call(lambda: connection.execute("COMMIT"))
                return
            yield [dict(zip(names, row, strict=True)) for row in rows]


class _Inserts:
    def __init__(self, session: _Session, table: str, plan: TransferPlan) -> None:
        self._session = session
        self._table = table
        self._plan = plan

    async def write(self, rows: list[Row], columns: tuple[str, ...]) -> None:
        named = ", ".join(map(quoted, columns))
        places = ", ".join("?" * len(columns))
        ending = on_conflict(self._plan, columns)
        statement = f"INSERT INTO {self._table} ({named}) VALUES ({places}){ending}"
        takes = self._session.engine.takes

        def insert() -> None:
            values = [tuple(_stored(row.get(name), takes) for name in columns) for row in rows]
            self._session.connection.executemany(statement, values)

        await self._session.call(insert)


def _stored(value: Any, takes: tuple[type, ...]) -> Any:
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(plain(value)).decode()
    return value if isinstance(value, takes) else plain(value)


@contextmanager
def _translated(engine: Engine, place: Place) -> Iterator[None]:
    try:
        yield
    except engine.errors as error:
        raise engine.failure(error, place) from None
