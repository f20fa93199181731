"""One call of DuckDB: a connection that opens, runs its statements and closes in one thread."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolTable
from noetl.templates.secret import Secret
from noetl.tools.duckdb_credentials import statements_for
from noetl.tools.duckdb_failures import duckdb_failure, extension_missing, is_locked_elsewhere
from noetl.tools.duckdb_tables import Given, arrow_table, is_arrow_enough, read_batches
from noetl.tools.failures import failed
from noetl.tools.sql_parameters import BoundStatement
from noetl.tools.sql_results import Outcome, change_outcome, plain, rows_outcome
from noetl.tools.sql_statements import Statement, controls_transaction
from noetl.tools.sql_tables import FETCH_ROWS, ResultRows
from noetl.tools.sql_threads import Interruption

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
_EXTENSION = re.compile(r"INSTALL\s+[\"']?(\w+)", re.IGNORECASE)
_AWARE = "TIMESTAMP WITH TIME ZONE"
_ZONE = re.compile(r"([+-]\d\d)(?::?(\d\d))?$")


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
        self.scratch: Path | None = None  # for files of large results; None: all of them are lists

    def run(self, interruption: Interruption) -> tuple[list[Outcome], ToolTable | None]:
        interruption.check()
        try:
            opened = duckdb.connect(self._path, config=CONFIGURATION)
        except duckdb.Error as error:
            if is_locked_elsewhere(error):
                raise LockedElsewhere from None
            raise duckdb_failure(error, self._secrets) from None
        with closing(opened) as connection:
            interruption.watch(lambda: _interrupt(connection))
            try:
                self._prepare(connection)
                return self._run_all(connection, interruption)
            except duckdb.Error as error:
                raise duckdb_failure(error, self._secrets) from None

    def _prepare(self, connection: "duckdb.DuckDBPyConnection") -> None:
        attaches = any(item.statement.words[:1] == ("ATTACH",) for item in self._statements)
        for extension, sql in statements_for(self._credentials, attach=not attaches):
            _check_installed(connection, extension)
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
                outcomes.append(run_statement(connection, bound, sink, interruption.check))
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


def run_statement(
    connection: "duckdb.DuckDBPyConnection",
    bound: BoundStatement,
    sink: ResultRows | None = None,
    check: Callable[[], None] = lambda: None,
) -> Outcome:
    words = bound.statement.words
    if "INSTALL" in words[:2]:
        return _installed(connection, bound.text)
    arguments = list(bound.arguments) or None
    kinds = [parsed.type.name for parsed in connection.extract_statements(bound.text)]
    if kinds == ["SELECT"]:
        return _selected(connection, bound.text, arguments, (sink, check))
    connection.execute(bound.text, arguments)
    columns = _columns(connection)
    if columns == ["Count"] and "RETURNING" not in words:
        found = connection.fetchone()
        return change_outcome(found[0] if found else 0, words[0])
    if columns in ([], ["Success"]):
        return change_outcome(0, words[0] if words else "")
    return rows_outcome(columns, ([plain(value) for value in row] for row in connection.fetchall()))


def _columns(connection: "duckdb.DuckDBPyConnection") -> list[str]:
    return [str(column[0]) for column in connection.description or ()]


def _selected(
    connection: "duckdb.DuckDBPyConnection",
    text: str,
    arguments: list[Any] | None,
    into: tuple[ResultRows | None, Callable[[], None]],
) -> Outcome:
    """Rows; values that the driver would give only with loss are asked for as text."""
    described = _described(connection, text, arguments)
    sink, check = into
    if sink is not None and is_arrow_enough(described):
        sink.begin([name for name, _ in described])
        return read_batches(connection.sql(text, params=arguments), sink, check)
    readings = [_reading(kind) for _, kind in described]
    if any(template != "{}" for template, _ in readings):
        short = [f"c{index}" for index in range(len(readings))]
        picked = ", ".join(
            template.format(name) for name, (template, _) in zip(short, readings, strict=True)
        )
        text = f"SELECT {picked} FROM (\n{text}\n) AS given({', '.join(short)})"
    connection.execute(text, arguments)
    columns = [name for name, _ in described] or _columns(connection)
    readers = [reader for _, reader in readings] or [plain] * len(columns)

    def read(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
        return [[reader(value) for reader, value in zip(readers, row, strict=True)] for row in rows]

    if sink is None:
        return rows_outcome(columns, read(connection.fetchall()))
    sink.begin(columns)
    while rows := connection.fetchmany(FETCH_ROWS):
        check()
        sink.add(read(rows))
    return sink.outcome()


def _described(
    connection: "duckdb.DuckDBPyConnection", text: str, arguments: list[Any] | None
) -> list[tuple[str, str]]:
    """Names and types of the columns, before anything runs; empty where DuckDB does not say."""
    try:
        connection.execute(f"DESCRIBE {text}", arguments)
    except (duckdb.ParserException, duckdb.NotSupportedError):
        return []
    return [(str(row[0]), str(row[1])) for row in connection.fetchall()]


def _reading(kind: str) -> tuple[str, Callable[[Any], Any]]:
    """How to ask for a column of this type, and how to read what comes."""
    if kind == _AWARE:
        return "CAST({} AS VARCHAR)", _moment
    if kind == "INTERVAL":
        return "CAST({} AS VARCHAR)", plain
    if kind == "JSON":
        return "{}", _from_json
    if _AWARE in kind or "INTERVAL" in kind or "JSON" in kind:
        return "CAST(to_json({}) AS VARCHAR)", _from_json
    return "{}", plain


def _from_json(text: str | None) -> Any:
    return None if text is None else plain(json.loads(text))


def _moment(text: str | None) -> str | None:
    """`2024-01-01 00:00:00+00` as ISO 8601 writes it."""
    if text is None or " " not in text:
        return text
    return _ZONE.sub(lambda found: f"{found[1]}:{found[2] or '00'}", text.replace(" ", "T", 1))


def _installed(connection: "duckdb.DuckDBPyConnection", text: str) -> Outcome:
    """INSTALL of what is here already is fine; nothing is fetched."""
    found = _EXTENSION.search(text)
    _check_installed(connection, found[1].lower() if found else "")
    return change_outcome(0, "INSTALL")


def _check_installed(connection: "duckdb.DuckDBPyConnection", name: str) -> None:
    sql = (
        "SELECT count(*) FROM duckdb_extensions()"
        " WHERE installed AND (extension_name = $1 OR list_contains(aliases, $1))"
    )
    found = connection.execute(sql, [name]).fetchone()
    if not found or not found[0]:
        raise extension_missing(name)
