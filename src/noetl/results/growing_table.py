"""A table whose columns are known only as its rows come: each column has the type that all its
values have, and is JSON text once they have none.

Values read back are exactly those that were added. A column that changes its type late has the
file written again, which happens to a column twice at most.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from noetl.kernel import canonical_json
from noetl.results.columns import is_json, json_field, type_of
from noetl.results.stored_table import StoredTable
from noetl.results.table_writer import TableFile, TableWriter
from noetl.results.tabular import TablePath


class GrowingTable:
    """Columns keep their order. `hints` are types, as Arrow calls them, for columns that begin with
    nothing."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        shell: dict[str, Any],
        table: TablePath,
        hints: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._names = names
        self._shell = shell
        self._table = table
        self._hints = hints or {}
        self._fields: list[Any] = []
        self._writer: TableWriter | None = None

    def add(self, columns: Sequence[Any]) -> None:
        """Lists of plain values, or arrays of Arrow that read back as such. Raises NotFinite,
        ValueNotPlain."""
        kinds = [each.type if isinstance(each, pa.Array) else type_of(each) for each in columns]
        before = self._fields or [None] * len(kinds)
        fields = [
            self._merged(name, field, kind)
            for name, field, kind in zip(self._names, before, kinds, strict=True)
        ]
        if not _are_same(fields, self._fields):
            self._rewrite(fields)
        arrays = [_array(field, each) for field, each in zip(fields, columns, strict=True)]
        assert self._writer is not None
        self._writer.write(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))

    def close(self) -> TableFile:
        assert self._writer is not None, "a table has rows before it is closed"
        return self._writer.close()

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.discard()

    def _merged(self, name: str, field: Any, kind: Any) -> Any:
        if kind is not None and pa.types.is_null(kind):
            hint = self._hints.get(name)
            return field or pa.field(name, pa.type_for_alias(hint) if hint else kind)
        if field is None or pa.types.is_null(field.type):
            return json_field(name) if kind is None else pa.field(name, kind)
        return field if is_json(field) or field.type == kind else json_field(name)

    def _rewrite(self, fields: list[Any]) -> None:
        old, self._writer = self._writer, self._new_writer(fields)
        self._fields = fields
        if old is None:
            return
        path = old.close().path
        try:
            with StoredTable(path) as stored:
                for batch in stored.batches():
                    arrays = [
                        _array(field, column, is_text=is_json(before))
                        for field, before, column in zip(
                            fields, batch.schema, batch.columns, strict=True
                        )
                    ]
                    self._writer.write(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))
        finally:
            path.unlink()

    def _new_writer(self, fields: list[Any]) -> TableWriter:
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(suffix=".feather", dir=self._folder)
        os.close(descriptor)
        return TableWriter(Path(path), pa.schema(fields), self._shell, self._table)


def _are_same(fields: list[Any], others: list[Any]) -> bool:
    """Text and JSON differ in their marks alone."""
    schema = pa.schema(fields)
    return bool(schema.equals(pa.schema(others), check_metadata=True))


def _array(field: Any, values: Any, *, is_text: bool = False) -> Any:
    """`is_text`: the values are JSON already."""
    if isinstance(values, pa.Array):
        if pa.types.is_null(values.type):
            return pa.nulls(len(values), field.type)
        if is_text or not is_json(field):
            return values
        values = values.to_pylist()
    if is_json(field):
        values = [
            None if value is None else canonical_json.encode(value).decode() for value in values
        ]
    return pa.array(values, field.type)
