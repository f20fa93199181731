"""Secrets in a table that is about to be stored: looked for in every text, batch by batch.

Nearly no table holds one, and then nothing is written.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noetl.results.mapping import mapped_file
from noetl.results.stored_table import StoredTable
from noetl.results.table_writer import TableWriter
from noetl.templates.secret import SUBSTRING_CHARS_MIN, scrub_forms


def scrubbed(table: StoredTable, forms: list[str], folder: Path) -> StoredTable:
    """The same table where it holds none of these texts, else a copy without them."""
    shell = scrub_forms(table.shell, forms)
    pattern = _pattern(forms)
    if shell == table.shell and not any(_holds(batch, pattern) for batch in table.batches()):
        return table
    descriptor, name = tempfile.mkstemp(suffix=".feather", dir=folder)
    os.close(descriptor)
    path = Path(name)
    try:
        with TableWriter(path, table.schema, shell, table.table) as writer:
            for batch in table.batches():
                writer.write(_clean(batch, pattern, forms))
            writer.close()
        view = mapped_file(path)
        assert view is not None, "a file that was just written can be read"
        return StoredTable(view)
    finally:
        path.unlink(missing_ok=True)


def _pattern(forms: list[str]) -> str:
    """Longer forms come first: of several that fit in one place, Arrow takes the first."""
    parts = [re.escape(form) for form in forms if len(form) >= SUBSTRING_CHARS_MIN]
    exact = [f"^{re.escape(form)}$" for form in forms if len(form) < SUBSTRING_CHARS_MIN]
    return "|".join([*parts, *exact])


def _holds(batch: Any, pattern: str) -> bool:
    return any(
        pc.any(pc.match_substring_regex(texts, pattern)).as_py()
        for column in batch.columns
        for texts in _texts(column)
    )


def _texts(array: Any) -> Iterator[Any]:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield array
    elif pa.types.is_struct(kind):
        for part in array.flatten():
            yield from _texts(part)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _texts(array.flatten())


def _clean(batch: Any, pattern: str, forms: list[str]) -> Any:
    columns = [
        pa.array(scrub_forms(column.to_pylist(), forms), column.type)
        if any(pc.any(pc.match_substring_regex(texts, pattern)).as_py() for texts in _texts(column))
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
