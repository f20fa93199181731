"""Tables larger than memory: record batches in, one file of the pinned form out."""

from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from noetl.kernel.errors import NotFinite, ValueNotPlain
from noetl.results.columns import ENCODING, JSON, is_json
from noetl.results.feather import BATCH_ROWS, metadata_of, schema_digest, write_options
from noetl.results.tabular import TablePath

BATCH_BYTES_MAX = 64 * 1024 * 1024
"""As much waits in memory until a batch is full; wide rows make shorter batches."""

AT_VALUE = TablePath(("value",))


class TableFile(NamedTuple):
    path: Path
    row_count: int
    byte_length: int
    schema_digest: str


class TableWriter:
    """Writes what `encode_table` would, if the table were one in memory with these types.

    The shell goes first, so it cannot know the number of rows: name the places where that
    belongs as `counts` of the table. Leaving the block by an error removes the file.
    """

    def __init__(
        self,
        path: Path,
        schema: Any,
        shell: dict[str, Any] | None = None,
        table: TablePath = AT_VALUE,
    ) -> None:
        """Raises ValueNotPlain for columns whose values would not read back as plain ones."""
        _check_schema(schema)
        fields = [
            field.with_metadata({ENCODING: JSON} if is_json(field) else {}) for field in schema
        ]
        self._schema = pa.schema(fields, metadata_of(shell or {}, table))
        self._path = path
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = ipc.new_file(self._sink, self._schema, options=write_options())
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._row_count = 0

    def write(self, batch: Any) -> None:
        """Raises ValueNotPlain or NotFinite, and then the batch is not written."""
        if not batch.schema.equals(self._schema, check_metadata=False):
            raise ValueNotPlain("the batch", "has other columns than its table; cast it first")
        _check_finite(batch)
        batch = batch.replace_schema_metadata(None)
        self._row_count += batch.num_rows
        while batch.num_rows:
            if self._waiting_bytes and self._waiting_bytes + batch.nbytes > BATCH_BYTES_MAX:
                self._flush()
            room = BATCH_ROWS - self._waiting_rows
            self._wait(batch.slice(0, room))
            batch = batch.slice(room)

    def close(self) -> TableFile:
        """The file is complete with this and not before."""
        self._flush()
        self._writer.close()
        byte_length: int = self._sink.tell()
        self._sink.close()
        return TableFile(self._path, self._row_count, byte_length, schema_digest(self._schema))

    def discard(self) -> None:
        """Close and remove what was written."""
        self._waiting.clear()
        self._sink.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._sink.closed:
            self.discard()

    def _wait(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows == BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        # One batch is copied too: of a slice, Arrow would write the buffers that it was cut from.
        whole = pa.concat_batches(self._waiting)
        self._writer.write_batch(pa.RecordBatch.from_arrays(whole.columns, schema=self._schema))
        self._waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0


def _check_schema(schema: Any) -> None:
    names = schema.names
    for field in schema:
        if names.count(field.name) > 1:
            raise ValueNotPlain("the table", f"has two columns {field.name!r}; rename one")
        if not _is_plain(field.type):
            reason = f"is a {field.type}; cast it to text, numbers, booleans, lists or structs"
            raise ValueNotPlain(f"the column {field.name!r}", reason)
    if not names:
        raise ValueNotPlain("the table", "has no columns; give it one")


def _is_plain(kind: Any) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    tests = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    return any(test(kind) for test in (*tests, types.is_string, types.is_large_string))


def _check_finite(batch: Any) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not _is_finite(column):
            raise NotFinite(f"a value of the column {name!r}", float("nan"))


def _is_finite(array: Any) -> bool:
    kind = array.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(array)).as_py() is not False
    if pa.types.is_struct(kind):
        return all(map(_is_finite, array.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_finite(array.flatten())
    return True
