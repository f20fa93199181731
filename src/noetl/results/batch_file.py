"""Record batches as one file of the pinned form, in bounded memory.

Also loaded by its path, in processes that have Arrow and nothing of ours: it imports neither our
package nor anything else.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

ENCODER = "noetl-feather/1"
"""Changes with the bytes that are written for a content; readers know all that came before."""

WRITTEN_BY = b"noetl.encoder"
SHELL = b"noetl.shell"
KEYS = b"noetl.table"

ENCODING = b"noetl.encoding"
JSON = b"json"
"""The mark of a column whose text is JSON."""

BATCH_ROWS = 65_536
BATCH_BYTES_MAX = 64 * 1024 * 1024
"""As much waits in memory until a batch is full; wide rows make shorter batches."""


class BatchUnfit(ValueError):
    """A column that would not read back as plain values, or a batch of another form."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} {reason}")
        self.place = place
        self.reason = reason


class NumberNotFinite(ValueError):
    """A number that JSON does not have."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} is not finite; use null")
        self.place = place


def write_options() -> Any:
    """All of them said: a default of Arrow, or of its environment, must not move our bytes."""
    return ipc.IpcWriteOptions(
        metadata_version=ipc.MetadataVersion.V5,
        allow_64bit=False,
        use_legacy_format=False,
        compression=None,
        use_threads=False,
        emit_dictionary_deltas=False,
        unify_dictionaries=False,
    )


class BatchFile:
    """The schema is written as it is given, with its metadata."""

    def __init__(self, path: str, schema: Any) -> None:
        self.schema = schema
        self.row_count = 0
        self._sink = pa.OSFile(path, "wb")
        self._writer = ipc.new_file(self._sink, schema, options=write_options())
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    @property
    def is_closed(self) -> bool:
        return bool(self._sink.closed)

    def write(self, batch: Any) -> None:
        """Raises BatchUnfit or NumberNotFinite, and then the batch is not written."""
        if not batch.schema.equals(self.schema, check_metadata=False):
            raise BatchUnfit("the batch", "has other columns than its table; cast it first")
        check_finite(batch)
        batch = batch.replace_schema_metadata(None)
        self.row_count += batch.num_rows
        while batch.num_rows:
            if self._waiting_bytes and self._waiting_bytes + batch.nbytes > BATCH_BYTES_MAX:
                self._flush()
            room = BATCH_ROWS - self._waiting_rows
            self._wait(batch.slice(0, room))
            batch = batch.slice(room)

    def close(self) -> int:
        """The file is complete with this and not before; its length."""
        self._flush()
        self._writer.close()
        byte_length: int = self._sink.tell()
        self._sink.close()
        return byte_length

    def abandon(self) -> None:
        self._waiting.clear()
        self._sink.close()

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
        self._writer.write_batch(pa.RecordBatch.from_arrays(whole.columns, schema=self.schema))
        self._waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0


def check_schema(schema: Any) -> None:
    """Raises BatchUnfit for columns whose values would not read back as plain ones."""
    names = schema.names
    for field in schema:
        if names.count(field.name) > 1:
            raise BatchUnfit("the table", f"has two columns {field.name!r}; rename one")
        if not is_plain(field.type):
            reason = f"is a {field.type}; cast it to text, numbers, booleans, lists or structs"
            raise BatchUnfit(f"the column {field.name!r}", reason)
    if not names:
        raise BatchUnfit("the table", "has no columns; give it one")


def is_plain(kind: Any) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(is_plain(field.type) for field in kind)
    tests = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    return any(test(kind) for test in (*tests, types.is_string, types.is_large_string))


def check_finite(batch: Any) -> None:
    """Raises NumberNotFinite."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not is_finite(column):
            raise NumberNotFinite(f"a value of the column {name!r}")


def is_finite(array: Any) -> bool:
    kind = array.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(array)).as_py() is not False
    if pa.types.is_struct(kind):
        return all(map(is_finite, array.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_finite(array.flatten())
    return True
