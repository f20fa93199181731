"""Connections to SQLite files that rows of a loop use one after the other.

A connection is kept only after a call that left nothing in it, and only for a moment: whoever reads
a file by other means finds it closed soon, and its write-ahead log with it. Whether the path still
leads to the same file is looked at each time. Used by threads.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from noetl.tools.sql_statements import Statement
from noetl.tools.sql_threads import SqlThreads

MEMORY = ":memory:"
BUSY_SECONDS = 0.1
"""How long SQLite itself waits for another writer; whoever called may wait again."""

IDLE_SECONDS = 1.0
IDLE_MAX = 8
"""Kept per file; more than that were never in use at once for long."""

_ROWS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES"})
_OF_CONNECTION = frozenset({"LAST_INSERT_ROWID", "CHANGES", "TOTAL_CHANGES"})

Identity = tuple[int, int]


@dataclass(slots=True)
class OpenFile:
    path: str
    connection: sqlite3.Connection
    identity: Identity | None  # of the file; None: it has none, or none any more
    idle_since: float = 0.0
    is_wal: bool | None = None  # None: nobody has asked yet

    def has_wal(self) -> bool:
        """Whether what was committed may lie beside the file until the last connection closes."""
        if self.is_wal is None:
            [mode] = self.connection.execute("PRAGMA journal_mode").fetchone()
            self.is_wal = mode == "wal"
        return self.is_wal


class SqliteConnections:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._idle: dict[str, list[OpenFile]] = {}
        self._is_closed = False

    def taken(self, path: str, *, afresh: bool) -> OpenFile:
        """One that nobody else has; `afresh`: new, with none idle beside it.

        Raises sqlite3.Error.
        """
        identity = None if path == MEMORY else _identity(path)
        with self._lock:
            idle = self._idle.get(path, [])
            same = [] if afresh else [each for each in idle if each.identity == identity]
            others = [each for each in idle if each not in same]
            found = same.pop() if same and identity is not None else None
            self._put(path, same)
        _close(others)
        return found or self._opened(path)

    def keep(self, opened: OpenFile) -> None:
        """Only after a call that left nothing in it."""
        with self._lock:
            idle = self._idle.setdefault(opened.path, [])
            is_kept = not self._is_closed and len(idle) < IDLE_MAX and opened.identity is not None
            if is_kept:
                opened.idle_since = self._now()
                idle.append(opened)
        if not is_kept:
            _close([opened])

    def drop(self, opened: OpenFile) -> None:
        """What it did not commit is undone."""
        _close([opened])

    def close_idle_of(self, path: str) -> None:
        with self._lock:
            idle = self._idle.pop(path, [])
        _close(idle)

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    def close_idle(self) -> None:
        """Those that were idle for too long."""
        too_old = self._now() - IDLE_SECONDS
        old: list[OpenFile] = []
        with self._lock:
            for path, idle in list(self._idle.items()):
                old += [each for each in idle if each.idle_since <= too_old]
                self._put(path, [each for each in idle if each.idle_since > too_old])
        _close(old)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle = [each for listed in self._idle.values() for each in listed]
            self._idle.clear()
        _close(idle)

    def _put(self, path: str, idle: list[OpenFile]) -> None:
        if idle:
            self._idle[path] = idle
        else:
            self._idle.pop(path, None)

    def _opened(self, path: str) -> OpenFile:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        return OpenFile(path, connection, None if path == MEMORY else _identity(path))


class Sweep:
    """Closes connections that nobody uses, a while after a call."""

    def __init__(self, connections: SqliteConnections, threads: SqlThreads) -> None:
        self._connections = connections
        self._threads = threads
        self._timer: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(IDLE_SECONDS, self._go)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go(self) -> None:
        self._timer = None
        if self._connections.has_idle:
            self._threads.begin(self._connections.close_idle)
            self.arm()


def leaves_nothing(statements: Sequence[Statement]) -> bool:
    """Whether they read and write rows, and neither change nor ask for what a connection holds."""
    return all(
        not _ROWS.isdisjoint(statement.words[:1]) and _OF_CONNECTION.isdisjoint(statement.calls)
        for statement in statements
    )


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _close(opened: Sequence[OpenFile]) -> None:
    for each in opened:
        with suppress(sqlite3.Error):  # a failure of the last checkpoint is no failure of a call
            each.connection.close()
