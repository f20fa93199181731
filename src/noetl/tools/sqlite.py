"""Run SQL on a SQLite file.

All statements of a call are one transaction, unless the text has BEGIN or COMMIT itself, or one of
them, such as VACUUM, cannot run inside of a transaction. Then each stands alone. Rows of a loop
share connections; a step of its own leaves a file with a write-ahead log closed, so it is complete.
"""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.templates.secret import Secret, scrub
from noetl.tools.credential_fields import secrets_of
from noetl.tools.failures import failed
from noetl.tools.sql_effects import only_reads
from noetl.tools.sql_parameters import BoundStatement, bound_statements, has_sql_effect
from noetl.tools.sql_results import Outcome, change_outcome, combined, plain, rows_outcome
from noetl.tools.sql_statements import SQLITE, Statement, controls_transaction
from noetl.tools.sql_threads import FileLocks, Interrupted, Interruption, SqlThreads
from noetl.tools.sqlite_connections import (
    MEMORY,
    OpenFile,
    SqliteConnections,
    Sweep,
    leaves_nothing,
)
from noetl.tools.sqlite_groups import Answer, Groups, Waiting

BUSY_TRIES_MAX = 100
"""How often to wait for another writer of the file."""

_ALONE = frozenset({"VACUUM", "PRAGMA", "ATTACH", "DETACH"})
_PRIMARY_CODE = 0xFF
_KINDS: Final = {
    sqlite3.SQLITE_BUSY: "db_deadlock",
    sqlite3.SQLITE_LOCKED: "db_deadlock",
    sqlite3.SQLITE_CONSTRAINT: "db_constraint",
    sqlite3.SQLITE_CANTOPEN: "storage_access",
    sqlite3.SQLITE_PERM: "storage_access",
    sqlite3.SQLITE_READONLY: "storage_access",
    sqlite3.SQLITE_NOTADB: "storage_access",
    sqlite3.SQLITE_CORRUPT: "storage_access",
    sqlite3.SQLITE_IOERR: "storage_access",
    sqlite3.SQLITE_FULL: "storage_quota",
    sqlite3.SQLITE_TOOBIG: "storage_quota",
    sqlite3.SQLITE_AUTH: "auth",
    sqlite3.SQLITE_MISMATCH: "transform",
    sqlite3.SQLITE_ERROR: "schema",
}
_ADVICE: Final = {
    "db_deadlock": "another writer holds the file; try again",
    "db_constraint": "check the values against the table's constraints",
    "storage_access": "check the path and that it is a database of SQLite",
    "storage_quota": "free space, or write less at once",
    "auth": "check what is allowed",
    "transform": "check the values and their types",
    "schema": "check the SQL against the tables",
    "unknown": "see what SQLite says",
}


class SqliteTool:
    waits = False

    def __init__(self, services: ToolServices) -> None:
        self._base = services.base
        self._threads = SqlThreads("sqlite-tool")
        self._connections = SqliteConnections(services.clock.monotonic)
        self._turns = FileLocks()
        self._groups = Groups[_Session](self._threads, self._turns, self._run_together)
        self._sweep = Sweep(self._connections, self._threads)

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return has_sql_effect(parameters, SQLITE)

    async def run(self, call: ToolCall) -> ToolResult:
        path = database_file(self._base, call.parameters.get("database"))
        statements = await bound_statements(call.parameters, SQLITE)
        session = _Session(self._connections, path, statements, call)
        try:
            async with asyncio.timeout(call.timeout_seconds):
                outcomes = await self._outcomes(session)
        except TimeoutError:
            raise failed(
                "db_timeout",
                f"the SQL took longer than {call.timeout_seconds:g} s and was stopped;"
                " raise `timeout`, or make the query faster",
            ) from None
        self._sweep.arm()
        return ToolResult(value=combined(session.told, outcomes))

    async def close(self) -> None:
        self._sweep.stop()
        self._threads.close()
        await asyncio.to_thread(self._connections.close)

    async def _outcomes(self, session: "_Session") -> list[Outcome]:
        """Writers of this process take turns: in threads they would poll for the file's lock."""
        if session.only_reads or session.path == MEMORY:
            return await self._threads.run(session.run)
        if session.is_row and session.is_plain:
            return await self._groups.run(session.path, session)
        async with self._turns.holding(session.path):
            return await self._threads.run(session.run)

    def _run_together(
        self, batch: Sequence[Waiting["_Session"]], _: Interruption
    ) -> Sequence[Answer]:
        """In one transaction if all goes well; else it is undone, and each runs alone."""
        answers = _in_one_transaction(self._connections, batch) if len(batch) > 1 else None
        return answers or [_alone(waiting) for waiting in batch]


def database_file(base: Path, database: Any) -> str:
    if not isinstance(database, str) or not database.strip():
        raise failed("client_error", "there is no file to open; name it under `database`")
    return database if database == MEMORY else str(base / database)


class _Session:
    """One call, in the thread that it gets."""

    def __init__(
        self,
        connections: SqliteConnections,
        path: str,
        statements: Sequence[BoundStatement],
        call: ToolCall,
    ) -> None:
        self.path = path
        self.told = [item.statement for item in statements]
        self.only_reads = all(only_reads(statement) for statement in self.told)
        self.is_plain = leaves_nothing(self.told)
        self.is_row = call.stage_id is not None
        self._connections = connections
        self._statements = statements
        self._call = call

    def run(self, interruption: Interruption) -> list[Outcome]:
        try:
            opened = self._connections.taken(self.path, afresh=not self.is_plain)
            is_kept = False
            try:
                connection = opened.connection
                interruption.watch(lambda: _interrupt(connection))
                outcomes = self._run_all(Patience(connection, interruption))
                is_kept = self.is_plain and (self.is_row or not opened.has_wal())
                return outcomes
            finally:
                self._give_back(opened, is_kept=is_kept)
        except sqlite3.Error as error:
            raise self.failure(error) from None

    def _give_back(self, opened: OpenFile, *, is_kept: bool) -> None:
        if is_kept:
            self._connections.keep(opened)
            return
        self._connections.drop(opened)
        self._connections.close_idle_of(self.path)

    def _run_all(self, patience: "Patience") -> list[Outcome]:
        one = _is_one_transaction(self.told)
        if one:
            # A writer says so at once: two that both read first could not both go on to write.
            patience.execute("BEGIN" if self.only_reads else "BEGIN IMMEDIATE").close()
        outcomes = self.run_each(patience)
        if one:
            patience.execute("COMMIT").close()
        elif patience.connection.in_transaction:
            raise failed(
                "schema",
                "the SQL began a transaction and did not end it, so it was undone; add COMMIT",
            )
        return outcomes

    def run_each(self, patience: "Patience") -> list[Outcome]:
        """Its statements, in a transaction of somebody else. Raises ToolFailed."""
        outcomes: list[Outcome] = []
        for index, bound in enumerate(self._statements):
            try:
                outcomes.append(run_statement(patience, bound))
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                raise self.failure(error, index) from None
        return outcomes

    def failure(self, error: Exception, index: int | None = None) -> ToolFailed:
        several = index if len(self._statements) > 1 else None
        return sqlite_failure(error, secrets_of(self._call), several)


def _in_one_transaction(
    connections: SqliteConnections, batch: Sequence[Waiting[_Session]]
) -> Sequence[Answer] | None:
    """None: it was undone."""
    try:
        opened = connections.taken(batch[0].work.path, afresh=False)
    except sqlite3.Error:
        return None
    connection, answers = opened.connection, list[Answer]()
    waiter = Patience(connection, Interruption())
    try:
        waiter.execute("BEGIN IMMEDIATE").close()
    except sqlite3.Error as error:  # somebody else has the file, for all of them
        connections.drop(opened)
        return [waiting.work.failure(error) for waiting in batch]
    try:
        for waiting in batch:
            if not waiting.begin():
                answers.append(Interrupted())
                continue
            waiting.interruption.watch(lambda: _interrupt(connection))
            answers.append(waiting.work.run_each(Patience(connection, waiting.interruption)))
            waiting.interruption.watch(lambda: None)
        waiter.execute("COMMIT").close()
    except (sqlite3.Error, ToolFailed, Interrupted):
        connections.drop(opened)
        return None
    connections.keep(opened)
    return answers


def _alone(waiting: Waiting[_Session]) -> Answer:
    if not waiting.begin():
        return Interrupted()
    try:
        return waiting.work.run(waiting.interruption)
    except (ToolFailed, Interrupted) as error:
        return error


def sqlite_failure(
    error: Exception, secrets: Sequence[Secret], index: int | None = None
) -> ToolFailed:
    """`index` is that of the statement, if there were several."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = "transform" if code is None else _KINDS.get(code & _PRIMARY_CODE, "unknown")
    where = "" if index is None else f" in statement {index + 1}"
    return failed(
        kind,
        scrub(f"SQLite said{where}: {error}; {_ADVICE[kind]}", secrets),
        code=getattr(error, "sqlite_errorname", None),
        detail={} if index is None else {"statement": index},
    )


def _interrupt(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.ProgrammingError):  # closed a moment ago
        connection.interrupt()


class Patience:
    """Waits for other writers in short turns, so that a call that waits can be stopped."""

    def __init__(self, connection: sqlite3.Connection, interruption: Interruption) -> None:
        self.connection = connection
        self._interruption = interruption

    def execute(self, text: str, arguments: Sequence[Any] = ()) -> sqlite3.Cursor:
        for turn in range(1, BUSY_TRIES_MAX + 1):
            self._interruption.check()
            try:
                return self.connection.execute(text, arguments)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or turn == BUSY_TRIES_MAX:
                    raise
        raise AssertionError("the last turn returns or raises")


def run_statement(patience: Patience, bound: BoundStatement) -> Outcome:
    arguments = [_given(value) for value in bound.arguments]
    with closing(patience.execute(bound.text, arguments)) as cursor:
        if cursor.description is None:
            verb = bound.statement.words[0] if bound.statement.words else ""
            return change_outcome(max(cursor.rowcount, 0), verb)
        columns = [column[0] for column in cursor.description]
        return rows_outcome(columns, ([plain(value) for value in row] for row in cursor))


def _given(value: Any) -> Any:
    """Lists and maps are stored as JSON, which SQLite's own functions read."""
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    return msgspec.json.encode(value).decode()


def _is_one_transaction(statements: Sequence[Statement]) -> bool:
    return not any(
        controls_transaction(statement) or not _ALONE.isdisjoint(statement.words[:1])
        for statement in statements
    )
