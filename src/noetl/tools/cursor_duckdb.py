"""Claim rows of work from a DuckDB file: the claim's name is committed together with its rows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import duckdb

from noetl.ports.cursor import ClaimRequest, Fate
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.duckdb import database_path
from noetl.tools.duckdb_failures import duckdb_failure, is_locked_elsewhere, locked_too_long
from noetl.tools.duckdb_session import CONFIGURATION, LOCK_SECONDS, LOCK_TRIES_MAX
from noetl.tools.duckdb_statements import run_statement
from noetl.tools.sql_claims import CLAIMS_TABLE, claimed_rows, claiming_statements, forgotten
from noetl.tools.sql_parameters import BoundStatement
from noetl.tools.sql_results import Outcome
from noetl.tools.sql_statements import DUCKDB
from noetl.tools.sql_threads import FileLocks, Interruption, SqlThreads


class _Claim:
    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
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
        self._connection.execute("COMMIT")


class DuckdbCursor:
    """One process at a time has the file, and inside of it one claim: others wait their turn."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._threads = SqlThreads("duckdb-cursor")
        self._locks = FileLocks()

    @asynccontextmanager
    async def claim(self, request: ClaimRequest) -> AsyncIterator[_Claim]:
        call = request.call
        statements = await claiming_statements(call, DUCKDB)
        path = self._path(request)
        async with self._locks.holding(path):
            try:
                connection = await self._opened(path)
                try:
                    outcomes = await self._threads.run(
                        lambda turn: _begun(connection, turn, request, statements)
                    )
                    yield _Claim(connection, claimed_rows(outcomes), request.name, self._threads)
                finally:
                    await self._threads.run(lambda _: connection.close())
            except duckdb.Error as error:
                raise duckdb_failure(error, secrets_of(call)) from None

    async def fate(self, request: ClaimRequest, transaction: str) -> Fate:
        """Whoever has the file to itself knows that no claim is open."""
        path = self._path(request)

        def look(_: Interruption) -> Fate:
            with closing(duckdb.connect(path, config=CONFIGURATION)) as connection:
                _make_table(connection)
                sql = f"SELECT 1 FROM {CLAIMS_TABLE} WHERE name = ?"
                found = connection.execute(sql, [transaction]).fetchone()
                return "aborted" if found is None else "committed"

        async with self._locks.holding(path):
            try:
                return await self._threads.run(look)
            except duckdb.Error as error:
                if is_locked_elsewhere(error):
                    return "open"
                raise duckdb_failure(error, secrets_of(request.call)) from None

    async def close(self) -> None:
        self._threads.close()

    def _path(self, request: ClaimRequest) -> str:
        call = request.call
        return str(
            database_path(self._services, call.execution_id, call.parameters.get("database"))
        )

    async def _opened(self, path: str) -> "duckdb.DuckDBPyConnection":
        """Waits for whoever else has the file open; in the end it is an error."""
        for _ in range(LOCK_TRIES_MAX):
            try:
                return await self._threads.run(lambda _: duckdb.connect(path, config=CONFIGURATION))
            except duckdb.Error as error:
                if not is_locked_elsewhere(error):
                    raise
                await self._services.clock.sleep(LOCK_SECONDS)
        raise locked_too_long(path)


def _begun(
    connection: "duckdb.DuckDBPyConnection",
    interruption: Interruption,
    request: ClaimRequest,
    statements: list[BoundStatement],
) -> list[Outcome]:
    interruption.watch(connection.interrupt)
    _make_table(connection)
    connection.execute("BEGIN")
    names = connection.execute(f"SELECT name FROM {CLAIMS_TABLE}").fetchall()
    _forget(connection, forgotten(request, (name for (name,) in names)))
    connection.execute(f"INSERT INTO {CLAIMS_TABLE} VALUES (?)", [request.name])
    return [run_statement(connection, bound) for bound in statements]


def _forget(connection: "duckdb.DuckDBPyConnection", names: list[str]) -> None:
    if names:
        connection.execute(f"DELETE FROM {CLAIMS_TABLE} WHERE name IN (SELECT unnest(?))", [names])


def _make_table(connection: "duckdb.DuckDBPyConnection") -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {CLAIMS_TABLE} (name VARCHAR PRIMARY KEY)")
