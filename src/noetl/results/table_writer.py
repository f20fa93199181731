"""Tables larger than memory: record batches in, one file of the pinned form out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa

from noetl.kernel.errors import NotFinite, ValueNotPlain
from noetl.results.batch_file import (
    BATCH_BYTES_MAX,
    BATCH_ROWS,
    ENCODING,
    JSON,
    BatchFile,
    BatchUnfit,
    NumberNotFinite,
    check_schema,
)
from noetl.results.columns import is_json
from noetl.results.feather import metadata_of, schema_digest
from noetl.results.tabular import TablePath

__all__ = ["AT_VALUE", "BATCH_BYTES_MAX", "BATCH_ROWS", "TableFile", "TableWriter"]

AT_VALUE = TablePath(("value",))


class TableFile(NamedTuple):
    path: Path
    row_count: int
    byte_length: int
    schema_digest: str
    view: memoryview | None = None  # its bytes, where nothing has the path any more


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
        with _in_our_words():
            check_schema(schema)
        fields = [
            field.with_metadata({ENCODING: JSON} if is_json(field) else {}) for field in schema
        ]
        self._path = path
        self._file = BatchFile(str(path), pa.schema(fields, metadata_of(shell or {}, table)))

    def write(self, batch: Any) -> None:
        """Raises ValueNotPlain or NotFinite, and then the batch is not written."""
        with _in_our_words():
            self._file.write(batch)

    def close(self) -> TableFile:
        """The file is complete with this and not before."""
        byte_length = self._file.close()
        digest = schema_digest(self._file.schema)
        return TableFile(self._path, self._file.row_count, byte_length, digest)

    def discard(self) -> None:
        """Close and remove what was written."""
        self._file.abandon()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._file.is_closed:
            self.discard()


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except BatchUnfit as error:
        raise ValueNotPlain(error.place, error.reason) from error
    except NumberNotFinite as error:
        raise NotFinite(error.place, float("nan")) from error
