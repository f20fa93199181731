"""Claim rows of work from a SQLite file: the claim's name is committed together with its rows."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

from noetl.ports.cursor import ClaimRequest, Fate
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.sql_claims import CLAIMS_TABLE, claimed_rows, claiming_statements, forgotten
from noetl.tools.sql_parameters import BoundStatement
from noetl.tools.sql_results import Outcome
from noetl.tools.sql_statements import SQLITE
from noetl.tools.sql_threads import Interruption, SqlThreads
from noetl.tools.sqlite import Patience, database_file, run_statement, sqlite_failure
from noetl.tools.sqlite_connections import BUSY_SECONDS

_SQL_ERRORS = (sqlite3.Error, OverflowError, UnicodeError)


class _Claim:
    def __init__(
        self,
        connection: sqlite3.Connection,
        rows: list[dict[str, Any]],
        name: str,
        threads: SqlThreads,
    ) -> None:
        self.rows = rows
        self.transaction = name
        self._connection = connection
        self._threads = threads

    async def commit(self) -> None:
        await self._threads.run(self._committed)

    def _committed(self, _: Interruption) -> None:
        if not self.rows:  # nobody will ask what became of it
            _forget(self._connection, [self.transaction])
        self._connection.execute("COMMIT").close()


class SqliteCursor:
    """The file has one writer at a time: a claim that is open holds up every other one."""

    def __init__(self, services: ToolServices) -> None:
        self._base = services.base
        self._threads = SqlThreads("sqlite-cursor")

    @asynccontextmanager
    async def claim(self, request: ClaimRequest) -> AsyncIterator[_Claim]:
        call = request.call
        statements = await claiming_statements(call, SQLITE)
        connection = self._open(request)
        try:
            outcomes = await self._threads.run(
                lambda interruption: _begun(connection, interruption, request, statements)
            )
            yield _Claim(connection, claimed_rows(outcomes), request.name, self._threads)
        except _SQL_ERRORS as error:
            raise sqlite_failure(error, secrets_of(call)) from None
        finally:
            await self._threads.run(lambda _: connection.close())

    async def fate(self, request: ClaimRequest, transaction: str) -> Fate:
        """Whoever can write knows that no claim is open."""

        def look(_: Interruption) -> Fate:
            with closing(self._open(request)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                _make_table(connection)
                found = connection.execute(
                    f"SELECT 1 FROM {CLAIMS_TABLE} WHERE name = ?", [transaction]
                ).fetchone()
                connection.execute("COMMIT")
                return "aborted" if found is None else "committed"

        try:
            return await self._threads.run(look)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return "open"
            raise sqlite_failure(error, secrets_of(request.call)) from None

    async def close(self) -> None:
        self._threads.close()

    def _open(self, request: ClaimRequest) -> sqlite3.Connection:
        path = database_file(self._base, request.call.parameters.get("database"))
        try:
            return sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise sqlite_failure(error, secrets_of(request.call)) from None


def _begun(
    connection: sqlite3.Connection,
    interruption: Interruption,
    request: ClaimRequest,
    statements: list[BoundStatement],
) -> list[Outcome]:
    patience = Patience(connection, interruption)
    patience.execute("BEGIN IMMEDIATE").close()
    _make_table(connection)
    names = connection.execute(f"SELECT name FROM {CLAIMS_TABLE}").fetchall()
    _forget(connection, forgotten(request, (name for (name,) in names)))
    connection.execute(f"INSERT INTO {CLAIMS_TABLE} (name) VALUES (?)", [request.name]).close()
    return [run_statement(patience, bound) for bound in statements]


def _forget(connection: sqlite3.Connection, names: list[str]) -> None:
    sql = f"DELETE FROM {CLAIMS_TABLE} WHERE name = ?"
    connection.executemany(sql, [(name,) for name in names]).close()


def _make_table(connection: sqlite3.Connection) -> None:
    sql = f"CREATE TABLE IF NOT EXISTS {CLAIMS_TABLE} (name TEXT PRIMARY KEY) WITHOUT ROWID"
    connection.execute(sql).close()
