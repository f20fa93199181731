"""Tables on their way into code and out of it, as files of Arrow.

Runs in the process of the code: Arrow, what stands beside it by file, and nothing of ours by name.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

if TYPE_CHECKING:
    from noetl.results import batch_file
    from noetl.tools import python_plain, python_program
else:
    # Whoever loads this module has loaded those.
    batch_file = sys.modules["_noetl_batch_file"]
    python_plain = sys.modules["_noetl_python_plain"]
    python_program = sys.modules["_noetl_python_program"]

TABLE_BYTES_MIN = 4 * 1024 * 1024
"""Smaller tables are rows, as they would be without Arrow."""

_TEXT = pa.large_string()


class Column(NamedTuple):
    """How a column is written."""

    field: Any
    convert: Callable[[Any], Any]


def place(request: dict[str, Any]) -> None:
    """Put tables into the input: those that lie in files, and with `arrow` lists of records."""
    given = request["input"]
    if request["arrow"]:
        given = request["input"] = {key: _as_tables(item) for key, item in given.items()}
    for table in request["tables"]:
        *before, last = table["at"]
        inner = given
        for key in before:
            inner = inner[key]
        inner[last] = _opened(table["path"], as_arrow=request["arrow"])


def taken(result: Any, path: str) -> tuple[dict[str, int] | None, Any]:
    """The file that a large table of the result was written to, or the result without Arrow."""
    if _is_table(result):
        table, rows = _written(result, path, {"value": None}, ("value",))
        return table, rows
    if not isinstance(result, dict):
        return None, result
    for key, item in result.items():
        if isinstance(key, str) and _is_table(item):
            rest = {name: part for name, part in result.items() if name != key}
            python_plain.encoded(rest)  # says what is wrong with it, if anything
            shell = {"value": {**result, key: None}}
            table, rows = _written(item, path, shell, ("value", key))
            if table is not None:
                return table, None
            result = {**result, key: rows}
    return None, result


def _opened(path: str, *, as_arrow: bool) -> Any:
    try:
        table = ipc.open_file(pa.memory_map(path)).read_all()
    except (OSError, pa.ArrowException) as error:
        message = f"a table of the input cannot be read: {error}; run the task again"
        raise python_program.CodeRefused("missing_reference", message) from error
    if as_arrow:
        return table.replace_schema_metadata(None)
    rows = table.to_pylist()
    marks = [field.name for field in table.schema if _is_json(field)]
    for row in rows:
        for name in marks:
            row[name] = None if row[name] is None else json.loads(row[name])
    return rows


def _is_json(field: Any) -> bool:
    return bool(field.metadata and field.metadata.get(batch_file.ENCODING) == batch_file.JSON)


def _as_tables(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_tables(item) for key, item in value.items()}
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        return value
    names = value[0].keys() if value else ()
    if any(row.keys() != names for row in value):
        return value
    columns = {name: _column_of([row[name] for row in value]) for name in names}
    return pa.table(columns)


def _column_of(values: list[Any]) -> Any:
    """Text of JSON where Arrow has no one type for all values, as in stored tables."""
    try:
        column = pa.array(values)
        if column.to_pylist() == values:
            return column
    except (pa.ArrowException, OverflowError):
        pass
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return pa.array(texts, pa.string())


def _is_table(value: Any) -> bool:
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return hasattr(value, "columns") or hasattr(value, "schema")
    return hasattr(value, "__next__")  # perhaps of record batches


def _written(
    value: Any, path: str, shell: dict[str, Any], keys: tuple[str, ...]
) -> tuple[dict[str, int] | None, Any]:
    """The file's numbers, or the rows of a small one."""
    batches = _batches_of(value)
    if batches is None:
        return None, value
    first: list[Any] = []
    size = 0
    for batch in batches:
        first.append(batch)
        size += batch.nbytes
        if size >= TABLE_BYTES_MIN:
            return _file_of(chain(first, batches), path, shell, keys), None
    return None, [row for batch in first for row in batch.to_pylist()]


def _batches_of(value: Any) -> Any:
    """An iterator; None: it is no table that would not be rows anyway."""
    if isinstance(value, pa.RecordBatch):
        return iter([value])
    if isinstance(value, pa.Table):
        return iter(value.to_batches(max_chunksize=batch_file.BATCH_ROWS))
    if hasattr(value, "memory_usage"):
        return _batches_of_pandas(value)
    if hasattr(value, "__arrow_c_stream__"):
        return iter(pa.RecordBatchReader.from_stream(value))
    return _batches_of_items(value)


def _batches_of_pandas(frame: Any) -> Any:
    if frame.memory_usage(index=False, deep=True).sum() < TABLE_BYTES_MIN:
        return None  # as it always was
    for name, kind in frame.dtypes.items():
        if kind.kind == "f" and frame[name].isna().any():
            raise python_plain.NotPlain(
                f"result.{name} has NaN; only finite numbers can be recorded, use None"
            )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return iter(table.to_batches(max_chunksize=batch_file.BATCH_ROWS))


def _batches_of_items(items: Iterator[Any]) -> Iterator[Any] | None:
    first = next(items, None)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        kind = type(items).__name__
        raise python_plain.NotPlain(
            f"result is a {kind}, which JSON cannot carry; make it a list, or let it give"
            " record batches of Arrow"
        )
    return _flat(chain([first], items))


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        yield from item.to_batches() if isinstance(item, pa.Table) else (item,)


def _file_of(
    batches: Iterator[Any], path: str, shell: dict[str, Any], keys: tuple[str, ...]
) -> dict[str, int]:
    first = next(batches)
    columns = [_column(field) for field in first.schema]
    metadata = {
        batch_file.WRITTEN_BY: batch_file.ENCODER.encode(),
        batch_file.SHELL: _canonical(shell),
        batch_file.KEYS: _canonical(keys),
    }
    schema = pa.schema([column.field for column in columns], metadata)
    try:
        batch_file.check_schema(schema)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = batch_file.BatchFile(path, schema)
        for batch in chain([first], batches):
            if not batch.schema.equals(first.schema, check_metadata=False):
                raise python_plain.NotPlain("result has batches with other columns than its first")
            arrays = [
                column.convert(array) for column, array in zip(columns, batch.columns, strict=True)
            ]
            file.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return {"byte_length": file.close(), "row_count": file.row_count}
    except (batch_file.BatchUnfit, batch_file.NumberNotFinite) as error:
        raise python_plain.NotPlain(f"result: {error}") from error
    except OSError as error:
        message = f"the table cannot be written: {error}; free space where workers run"
        raise python_program.CodeRefused("storage_quota", message) from error


def _canonical(value: Any) -> bytes:
    plain = json.loads(python_plain.encoded(value))
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def _column(field: Any) -> Column:
    """As plain rows would have the values; what Arrow alone knows becomes text or a number."""
    kind, name, types = field.type, field.name, pa.types
    if batch_file.is_plain(kind):
        return Column(pa.field(name, kind), lambda array: array)
    if types.is_dictionary(kind):
        inner = _column(pa.field(name, kind.value_type))
        return Column(inner.field, lambda array: inner.convert(array.cast(kind.value_type)))
    if types.is_string_view(kind):
        return Column(pa.field(name, _TEXT), lambda array: array.cast(_TEXT))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        trouble = "is bytes; decode it, or encode it with base64"
        raise python_plain.NotPlain(f"result, in the column {name}, {trouble}")
    if types.is_temporal(kind) and not types.is_duration(kind):
        return Column(pa.field(name, pa.string()), _moments)
    if types.is_duration(kind) or (types.is_decimal(kind) and kind.scale > 0):
        return Column(pa.field(name, pa.float64()), _converted)
    mark = {batch_file.ENCODING: batch_file.JSON}
    return Column(pa.field(name, pa.string(), metadata=mark), _json_texts)


def _moments(array: Any) -> Any:
    """ISO 8601, as `isoformat` writes it; whole seconds and days without the way over Python."""
    kind = array.type
    if pa.types.is_date32(kind):
        return array.cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.tz in (None, "UTC"):
        plain = array.cast(pa.timestamp(kind.unit))
        seconds = plain.cast(pa.timestamp("s"), safe=False)
        if pc.all(pc.equal(seconds.cast(plain.type), plain)).as_py() is not False:
            texts = pc.strftime(seconds, "%Y-%m-%dT%H:%M:%S")
            return texts if kind.tz is None else pc.binary_join_element_wise(texts, "+00:00", "")
    return _converted(array, pa.string())


def _converted(array: Any, kind: Any = None) -> Any:
    values = [None if value is None else python_plain.plain(value) for value in array.to_pylist()]
    return pa.array(values, kind or pa.float64())


def _json_texts(array: Any) -> Any:
    return pa.array(
        [
            None if value is None else python_plain.encoded(value).decode()
            for value in array.to_pylist()
        ],
        pa.string(),
    )
