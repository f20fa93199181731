"""A stored table, read where it is asked: a row, a cell or a range, without decoding the rest."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import ipc

from noetl.results.columns import is_json
from noetl.results.errors import ResultUnreadable
from noetl.results.feather import schema_digest, shell_in
from noetl.results.table_writer import TableFile
from noetl.results.tabular import Row, with_table
from noetl.templates.errors import Path as Keys
from noetl.templates.lookup import MISSING, look_up

_UNREADABLE = (pa.ArrowException, OSError)  # Arrow says both of files that it cannot make out


class StoredTable:
    """The content behind a Feather file. A file is mapped into memory, bytes are not copied.

    What it gives is plain data of its own. Closing it lets go of the file or the bytes.
    """

    def __init__(self, source: Path | bytes | memoryview) -> None:
        """Raises ResultUnreadable; OSError where there is no such file."""
        self.view = source if isinstance(source, memoryview) else None
        is_path = isinstance(source, Path)
        self._file = pa.memory_map(str(source)) if is_path else pa.BufferReader(source)
        try:
            self._reader = ipc.open_file(self._file)
            self.schema = self._reader.schema
            self.shell, self.table = shell_in(self.schema)
        except (*_UNREADABLE, msgspec.MsgspecError, KeyError) as error:
            self.close()
            raise ResultUnreadable(f"is not a table: {error}") from error
        except ResultUnreadable:
            self.close()
            raise
        self._json_columns = {field.name for field in self.schema if is_json(field)}

    @property
    def schema_digest(self) -> str:
        return schema_digest(self.schema)

    @property
    def length(self) -> int:
        return self._ends[-1] if self._ends else 0

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """As a slice of the list: past the end there is nothing, from the end is negative."""
        names = self.schema.names
        found: list[Row] = []
        for batch in self._between(*slice(start, stop).indices(self.length)[:2]):
            columns = [self._values(name, batch.column(name)) for name in names]
            found += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return found

    def row(self, index: int) -> Row:
        batch, position = self._place_of(index)
        names = self.schema.names
        cells = batch.slice(position, 1).columns
        return {name: self._values(name, cell)[0] for name, cell in zip(names, cells, strict=True)}

    def cell(self, index: int, column: str) -> Any:
        """Raises LookupError, as a list of records would."""
        batch, position = self._place_of(index)
        if column not in self.schema.names:
            raise KeyError(column)
        return self._values(column, batch.column(column).slice(position, 1))[0]

    def whole(self) -> dict[str, Any]:
        """The content as it was written."""
        return with_table(self.shell, self.table, self.rows(), self.length)

    def look_into(self, keys: Sequence[str | int]) -> Any:
        """What stands under these keys of the content, or MISSING; no more rows than that."""
        keys = tuple(keys)
        for place in self.table.places:
            if keys[: len(place)] == place:
                return self._inside_table(keys[len(place) :])
        reaches_table = any(place[: len(keys)] == keys for place in self.table.places)
        rows = self.rows() if reaches_table else None
        return walk(with_table(self.shell, self.table, rows, self.length), keys)

    def as_file(self) -> TableFile:
        """For a store to take. Only of a table whose bytes are at hand."""
        assert self.view is not None, "a table is handed over by its bytes"
        return TableFile(Path(), self.length, self.view.nbytes, self.schema_digest, self.view)

    def batches(self) -> Iterator[Any]:
        """Arrow as it lies in the file, for tools that take it."""
        return iter(self._batches)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._reader = self.view = None
        self.__dict__.pop("_batches", None)

    def __enter__(self) -> "StoredTable":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @cached_property
    def _batches(self) -> list[Any]:
        reader = self._reader
        try:
            return [reader.get_batch(index) for index in range(reader.num_record_batches)]
        except _UNREADABLE as error:
            raise ResultUnreadable(f"is a damaged table: {error}") from error

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(batch.num_rows for batch in self._batches))

    def _place_of(self, index: int) -> tuple[Any, int]:
        from_start = index + self.length if index < 0 else index
        if not 0 <= from_start < self.length:
            raise IndexError(index)
        at = bisect_right(self._ends, from_start)
        batch = self._batches[at]
        return batch, from_start - self._ends[at] + batch.num_rows

    def _between(self, start: int, stop: int) -> Iterator[Any]:
        for batch, end in zip(self._batches, self._ends, strict=True):
            begin = end - batch.num_rows
            low, high = max(start, begin), min(stop, end)
            if low < high:
                yield batch.slice(low - begin, high - low)

    def _values(self, name: str, column: Any) -> list[Any]:
        values: list[Any] = column.to_pylist()
        if name not in self._json_columns:
            return values
        return [None if text is None else msgspec.json.decode(text) for text in values]

    def _inside_table(self, keys: Keys) -> Any:
        if not keys:
            return self.rows()
        index, *rest = keys
        if not isinstance(index, int) or not -self.length <= index < self.length:
            return MISSING
        if not rest:
            return self.row(index)
        name, *inner = rest
        if name not in self.schema.names:
            return MISSING
        return walk(self.cell(index, str(name)), inner)


def walk(value: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        value = look_up(value, key)
    return value
