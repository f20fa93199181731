"""Tables between DuckDB and Arrow: stored ones queried where they lie, results read in batches."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from noetl.kernel.errors import EventInvalid
from noetl.tools.failures import failed
from noetl.tools.sql_results import Outcome, number
from noetl.tools.sql_tables import ResultRows
from noetl.tools.table_inputs import TableInput

Given: TypeAlias = Path | list[Any] | tuple[str, ...]
"""A file of Arrow, rows, or the columns of a table that has none."""

_BATCH_ROWS = 65_536
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_SAME_IN_ARROW = _FLOATS | {
    *("BOOLEAN", "VARCHAR"),
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
}
"""Types whose values are the same by way of Arrow; others are read one by one."""


def tables_of(given: Any, files: Sequence[TableInput]) -> dict[str, Given]:
    """What `tables` names: lists of rows, results that have them under `rows`, or the name of a
    result or a dataset."""
    if not isinstance(given, Mapping):
        raise failed("client_error", "`tables` is not a map; write `name: '{{ step.rows }}'`")
    stored = {str(file.at[0]): file.path for file in files}
    found: dict[str, Given] = {}
    for name, value in given.items():
        rows = value.get("rows", value) if isinstance(value, Mapping) else value
        if name in stored:
            found[name] = stored[name]
        elif isinstance(rows, list):
            found[name] = rows or _columns_of(value) or rows
        else:
            kind = type(value).__name__
            raise failed("schema", f"the table {name!r} is a {kind}; give it a list of rows")
    return found


def _columns_of(value: Any) -> tuple[str, ...]:
    """Those that a result of SQL names beside its rows."""
    named = value.get("columns") if isinstance(value, Mapping) else None
    columns = named if isinstance(named, list) else []
    return tuple(dict.fromkeys(each for each in columns if isinstance(each, str)))


def arrow_table(name: str, given: Given) -> Any:
    """For DuckDB to scan; a file is mapped, so that it reads what the query needs."""
    import pyarrow as pa  # noqa: PLC0415 - loaded with the first table

    if isinstance(given, Path):
        try:
            return pa.ipc.open_file(pa.memory_map(str(given))).read_all()
        except (OSError, pa.ArrowException) as error:
            message = f"the table {name!r} cannot be read: {error}; run the task again"
            raise failed("missing_reference", message) from error
    if isinstance(given, tuple):  # of type null, which DuckDB takes for whatever a query needs
        return pa.table({column: pa.nulls(0) for column in given})
    rows = [row if isinstance(row, dict) else {"value": row} for row in given]
    columns = list(dict.fromkeys(chain.from_iterable(rows)))
    if not columns:
        raise failed(
            "schema",
            f"the table {name!r} has no rows, so its columns are not known; give the whole result"
            " of SQL (`{{ step }}`, not `{{ step.rows }}`), which names them, or a map with"
            " `columns` and `rows`",
        )
    return _table_of_rows(name, rows, columns)


def _table_of_rows(name: str, rows: list[dict[str, Any]], columns: list[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - loaded with the first table

    from noetl.results.columns import column_of  # noqa: PLC0415 - loads Arrow

    try:
        made = [column_of(column, [row.get(column) for row in rows]) for column in columns]
    except EventInvalid as error:
        raise failed("schema", f"the table {name!r} is not plain data: {error}") from error
    arrays = [pa.array(values, field.type) for field, values in made]
    return pa.Table.from_arrays(arrays, schema=pa.schema([field for field, _ in made]))


def is_arrow_enough(described: Sequence[tuple[str, str]]) -> bool:
    """Names and types of the columns: whether all of them are the same in Arrow."""
    names = {name for name, _ in described}
    kinds = {kind for _, kind in described}
    return bool(described) and len(names) == len(described) and kinds <= _SAME_IN_ARROW


def read_batches(relation: Any, sink: ResultRows, check: Callable[[], None]) -> Outcome:
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    while (batch := _next(reader)) is not None:
        check()
        sink.add_columns([_plain(column) for column in batch.columns], batch.nbytes)
    return sink.outcome()


def _next(reader: Any) -> Any:
    """The next batch, or None. Raises duckdb.Error, as every other way to ask does."""
    try:
        return next(reader, None)
    except OSError as error:  # Arrow knows no errors of others: only their words come through
        kind = str(error).partition(" Error:")[0].title().replace(" ", "")
        raised: type[Exception] = getattr(duckdb, f"{kind}Exception", duckdb.Error)
        raise raised(str(error)) from error


def _plain(column: Any) -> Any:
    """Numbers that are none are text, as databases spell them."""
    from noetl.results.batch_file import is_finite  # noqa: PLC0415 - loads Arrow

    if is_finite(column):
        return column
    return [None if value is None else number(value) for value in column.to_pylist()]
