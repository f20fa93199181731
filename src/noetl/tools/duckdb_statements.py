"""One statement of DuckDB: what it gave, with values that lose nothing on the way."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import duckdb

from noetl.tools.duckdb_failures import extension_missing
from noetl.tools.duckdb_tables import is_arrow_enough, read_batches
from noetl.tools.sql_parameters import BoundStatement
from noetl.tools.sql_results import Outcome, change_outcome, plain, rows_outcome
from noetl.tools.sql_tables import FETCH_ROWS, ResultRows

_EXTENSION = re.compile(r"INSTALL\s+[\"']?(\w+)", re.IGNORECASE)
_AWARE = "TIMESTAMP WITH TIME ZONE"
_ZONE = re.compile(r"([+-]\d\d)(?::?(\d\d))?$")


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
    check_installed(connection, found[1].lower() if found else "")
    return change_outcome(0, "INSTALL")


def check_installed(connection: "duckdb.DuckDBPyConnection", name: str) -> None:
    sql = (
        "SELECT count(*) FROM duckdb_extensions()"
        " WHERE installed AND (extension_name = $1 OR list_contains(aliases, $1))"
    )
    found = connection.execute(sql, [name]).fetchone()
    if not found or not found[0]:
        raise extension_missing(name)
