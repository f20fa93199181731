"""Files of tables on their way to a store: read in pieces, however large they are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from noetl.ports.object_store import CHUNK_BYTES


async def chunks_of(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while block := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield block
    finally:
        file.close()
