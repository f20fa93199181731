"""One SQLite file: one thread writes, one reads, and the driver's errors become ours."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import TypeVar

from noetl.kernel.errors import InvariantBroken, NoETLError, StoreUnavailable

BUSY_SECONDS = 10.0
"""How long to wait for a writer in another process before giving up."""

_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE = 0xFF  # the bits above it say only which kind of busy, full, …

T = TypeVar("T")


class SqliteFile:
    """A file that several stores may share, and several processes may open at once.

    It belongs to whoever opened it: stores use it and leave closing it to the owner.
    """

    def __init__(self, path: Path | str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = Path(path)
        self._writer = _Lane(self.path, "BEGIN IMMEDIATE", busy_seconds)
        self._reader = _Lane(self.path, "BEGIN", busy_seconds)
        self._unavailable: type[NoETLError] = StoreUnavailable

    def raising(self, unavailable: type[NoETLError]) -> "SqliteFile":
        """The same file, threads and connections, for a store with an error of its own."""
        shared = copy(self)
        shared._unavailable = unavailable
        return shared

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction: on disk when this returns, undone when it raises.

        A caller that is cancelled does not know which of the two; the work may still be done.
        """
        return await self._writer.run(work, self._unavailable)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on one view of everything committed so far. It must return plain values."""
        return await self._reader.run(work, self._unavailable)

    async def migrate(self, script: str) -> None:
        """Run a script in one transaction. It must be safe to run again: each opening does."""

        def run(connection: sqlite3.Connection) -> None:
            for statement in _statements(script):
                connection.execute(statement)

        await self.write(run)

    async def has_tables(self, *names: str) -> bool:
        """Whether they are all there; asks without changing anything."""
        sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ("
        sql += f"{', '.join('?' * len(names))})"
        found = await self.read(lambda connection: connection.execute(sql, names).fetchone()[0])
        return bool(found == len(names))

    async def close(self) -> None:
        """Finish what was asked for, then close. Closing again is not an error."""
        await self._reader.close()
        await self._writer.close()


class _Lane:
    """One thread and the one connection that no other thread touches."""

    def __init__(self, path: Path, begin: str, busy_seconds: float) -> None:
        self._path = path
        self._begin = begin
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"sqlite-{path.name}")
        self._closed = False

    async def run(
        self, work: Callable[[sqlite3.Connection], T], unavailable: type[NoETLError]
    ) -> T:
        if self._closed:
            raise unavailable(f"{self._path} was closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._translated, work, unavailable)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _translated(
        self, work: Callable[[sqlite3.Connection], T], unavailable: type[NoETLError]
    ) -> T:
        try:
            return self._transaction(work)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of damaged text
            self._disconnect()  # after a failed disk nothing in the connection can be trusted
            raise _ours(error, self._path, unavailable) from error

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connected()
        try:
            connection.execute(self._begin)
            outcome = work(connection)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return outcome

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _connect(self._path, self._busy_seconds)
            if self._begin == "BEGIN":
                self._connection.execute("PRAGMA query_only = ON")
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    opened = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
    try:
        opened.execute("PRAGMA page_size = 8192")
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("PRAGMA synchronous = FULL")
        opened.execute("PRAGMA foreign_keys = OFF")
    except sqlite3.Error:
        opened.close()
        raise
    return opened


def _statements(script: str) -> Iterator[str]:
    """One by one, because the driver's own way to run a script commits before it begins."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _ours(
    error: sqlite3.Error | UnicodeDecodeError, path: Path, unavailable: type[NoETLError]
) -> NoETLError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & _PRIMARY_CODE
    if code in _UNAVAILABLE:
        return unavailable(f"{path} did not answer: {error}")
    if code in _DAMAGED or isinstance(error, UnicodeDecodeError):
        return InvariantBroken(f"{path} is damaged: {error}; restore it from a backup")
    return InvariantBroken(f"{path} was used in a wrong way: {error}")
