"""One call of DuckDB: a connection of its own to a database that may be open for others already."""

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import duckdb

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolTable
from noetl.templates.secret import Secret
from noetl.tools.duckdb_credentials import statements_for
from noetl.tools.duckdb_failures import duckdb_failure, is_locked_elsewhere
from noetl.tools.duckdb_statements import check_installed, run_statement
from noetl.tools.duckdb_tables import Given, arrow_table
from noetl.tools.failures import failed
from noetl.tools.sql_parameters import BoundStatement
from noetl.tools.sql_results import Outcome
from noetl.tools.sql_statements import Statement, controls_transaction
from noetl.tools.sql_tables import ResultRows
from noetl.tools.sql_threads import Interruption

LOCK_TRIES_MAX = 100
LOCK_SECONDS = 0.1
"""How often, and how long each time, to wait for whoever else has a file open."""

CONFIGURATION: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "true",
    # Tables are those of the database and of the task, never variables of this program.
    "python_enable_replacements": "false",
    # A second lock on the same door: INSTALL would look here, and here is nothing.
    "custom_extension_repository": "/nonexistent",
}

_ALONE = frozenset(
    {"ATTACH", "DETACH", "CHECKPOINT", "FORCE", "VACUUM", "PRAGMA", "SET", "INSTALL", "LOAD", "USE"}
)
_PLAIN = frozenset(
    {"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "FROM", "VALUES", "TABLE"}
    | {"CREATE", "DROP", "ALTER", "COPY", "DESCRIBE", "SHOW", "SUMMARIZE", "EXPLAIN", "PIVOT"}
)


class LockedElsewhere(Exception):
    """Another process has the file open; it may be done with it soon."""


class DuckdbSession:
    def __init__(
        self,
        path: str,
        statements: Sequence[BoundStatement],
        credentials: Mapping[str, OpenCredential],
        secrets: Sequence[Secret],
    ) -> None:
        self._path = path
        self._statements = statements
        self._credentials = credentials
        self._secrets = secrets
        self.tables: Mapping[str, Given] = {}  # to be queried under these names
        self.database: duckdb.DuckDBPyConnection | None = None  # None: to be opened
        self.keeps = False  # … and left open, after a call that went well
        self.scratch: Path | None = None  # for files of large results; None: all of them are lists

    def run(self, interruption: Interruption) -> tuple[list[Outcome], ToolTable | None]:
        """Raises LockedElsewhere, and ToolFailed."""
        interruption.check()
        if self.database is None:
            self.database = self._opened()
        try:
            with closing(self.database.cursor()) as connection:
                interruption.watch(lambda: _interrupt(connection))
                self._prepare(connection)
                answer = self._run_all(connection, interruption)
        except BaseException as error:
            self._close()
            if isinstance(error, duckdb.Error):
                raise duckdb_failure(error, self._secrets) from None
            raise
        if not self.keeps:
            self._close()
        return answer

    def _close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None

    def _opened(self) -> "duckdb.DuckDBPyConnection":
        try:
            return duckdb.connect(self._path, config=CONFIGURATION)
        except duckdb.Error as error:
            if is_locked_elsewhere(error):
                raise LockedElsewhere from None
            raise duckdb_failure(error, self._secrets) from None

    def _prepare(self, connection: "duckdb.DuckDBPyConnection") -> None:
        attaches = any(item.statement.words[:1] == ("ATTACH",) for item in self._statements)
        for extension, sql in statements_for(self._credentials, attach=not attaches):
            check_installed(connection, extension)
            connection.execute(f"LOAD {extension}")
            connection.execute(sql)
        for name, given in self.tables.items():
            connection.register(name, arrow_table(name, given))

    def _run_all(
        self, connection: "duckdb.DuckDBPyConnection", interruption: Interruption
    ) -> tuple[list[Outcome], ToolTable | None]:
        outcomes: list[Outcome] = []
        told = [item.statement for item in self._statements]
        rows = None if self.scratch is None else ResultRows(self.scratch, told, outcomes)
        try:
            self._run_each(connection, interruption, outcomes, rows)
        except BaseException:
            if rows is not None:
                rows.discard()
            raise
        return outcomes, None if rows is None else rows.table

    def _run_each(
        self,
        connection: "duckdb.DuckDBPyConnection",
        interruption: Interruption,
        outcomes: list[Outcome],
        rows: ResultRows | None,
    ) -> None:
        """Of the last statement the rows may be too many for a list."""
        one = _is_one_transaction([item.statement for item in self._statements])
        if one:
            connection.execute("BEGIN")
        open_blocks = 0
        for index, bound in enumerate(self._statements):
            interruption.check()
            try:
                is_last = index == len(self._statements) - 1
                sink = rows if is_last else None
                outcomes.append(_patiently(connection, bound, sink, interruption))
            except duckdb.Error as error:
                several = index if len(self._statements) > 1 else None
                raise duckdb_failure(error, self._secrets, several) from None
            open_blocks = _blocks_after(bound.statement, open_blocks)
        if one:
            connection.execute("COMMIT")
        elif open_blocks:
            raise failed(
                "schema",
                "the SQL began a transaction and did not end it, so it was undone; add COMMIT",
            )


def _interrupt(connection: "duckdb.DuckDBPyConnection") -> None:
    with suppress(duckdb.Error):  # closed a moment ago
        connection.interrupt()


def _is_one_transaction(statements: Sequence[Statement]) -> bool:
    return not any(
        controls_transaction(statement) or not _ALONE.isdisjoint(statement.words[:1])
        for statement in statements
    )


def _blocks_after(statement: Statement, before: int) -> int:
    if not controls_transaction(statement):
        return before
    return 1 if statement.words[0] in ("BEGIN", "START") else 0


def _patiently(
    connection: "duckdb.DuckDBPyConnection",
    bound: BoundStatement,
    sink: ResultRows | None,
    interruption: Interruption,
) -> Outcome:
    """A file that is attached elsewhere is waited for. Nothing was done, so nothing is repeated."""
    tries = LOCK_TRIES_MAX if bound.statement.words[:1] == ("ATTACH",) else 1
    for turn in range(1, tries + 1):
        try:
            return run_statement(connection, bound, sink, interruption.check)
        except duckdb.Error as error:
            if turn == tries or not is_locked_elsewhere(error):
                raise
            interruption.pause(LOCK_SECONDS)
    raise AssertionError("the last turn returns or raises")


def leaves_nothing(statements: Sequence[Statement]) -> bool:
    """Whether all that other calls on the same database see of them is in its tables."""
    return all(
        not _PLAIN.isdisjoint(statement.words[:1]) and "SECRET" not in statement.words
        for statement in statements
    )
