"""A dataset as one file of Arrow, for programs that take a file and no more."""

import asyncio
from pathlib import Path
from typing import Any

from noetl.domain.events.values import ResultReference
from noetl.results.named_reads import NamedReads


async def dataset_file(
    reads: NamedReads, uri: str, path: Path, known: ResultReference | None = None
) -> Path:
    """Rows that ended well, as `DatasetTables` has them. Raises PayloadError, StoreUnavailable."""
    from noetl.results import dataset_tables  # noqa: PLC0415 - loads Arrow
    from noetl.results.table_writer import TableWriter  # noqa: PLC0415 - loads Arrow

    tables = dataset_tables.DatasetTables(reads)
    layout = await tables.layout(uri, known=known)
    with TableWriter(path, layout.schema) as writer:

        def write(piece: dataset_tables.Piece, source: Any) -> None:
            for batch in dataset_tables.read(layout, piece, source):
                writer.write(batch)

        for piece in layout.pieces:
            source = await tables.source(piece)
            await asyncio.to_thread(write, piece, source)
        await asyncio.to_thread(writer.close)
    return path
