"""Contents for templates: the rows of a large table are read where somebody looks at them."""

from typing import Any

from noetl.domain.events.values import ResultReference
from noetl.results.reading import Stored
from noetl.results.tabular import with_table
from noetl.results.tiers import FEATHER_MEDIA_TYPE
from noetl.templates.table_rows import TableRows

LAZY_BYTES_MIN = 8 * 1024 * 1024
"""A smaller table is a list: decoding it once is quicker than looking into it often."""


def is_large_table(known: ResultReference | None) -> bool:
    return (
        known is not None
        and known.media_type == FEATHER_MEDIA_TYPE
        and (known.byte_length or 0) >= LAZY_BYTES_MIN
    )


def content_within(stored: Stored, known: ResultReference | None) -> dict[str, Any]:
    """Blocks. What is open stays open as long as somebody has the rows."""
    if is_large_table(known):
        from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow

        assert isinstance(stored, StoredTable)
        rows = TableRows(stored, known, stored.table.keys)
        return with_table(stored.shell, stored.table, rows, stored.length)
    try:
        return stored.whole()
    finally:
        stored.close()
