"""Files of tables on their way to a store: read in pieces, however large they are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from noetl.ports.object_store import CHUNK_BYTES, blocks_of


async def chunks_of(source: Path | memoryview) -> AsyncIterator[bytes]:
    """Of a file that has a name, or of one that is mapped and has none any more."""
    if isinstance(source, memoryview):
        for part in blocks_of(source):
            yield await asyncio.to_thread(bytes, part)
        return
    file = await asyncio.to_thread(source.open, "rb")
    try:
        while block := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield block
    finally:
        file.close()
