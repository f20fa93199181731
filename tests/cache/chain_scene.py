"""An object store as far as a chain sees it, and real layers above it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.cache.memory import MemoryResultCache
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.kernel.errors import PayloadMissing
from noetl.ports.object_store import ArrowFile, ObjectFacts
from noetl.ports.result_cache import ResultCache


class Shelf:
    def __init__(self, data: bytes | None, path: Path | None = None) -> None:
        self.data = data
        self.path = path
        self.reads = 0
        self.asked = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.given_up = asyncio.Event()

    async def read(self, key: str) -> AsyncIterator[bytes]:
        self.reads += 1
        self.asked.set()
        try:
            await self.may_go_on.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        if self.data is None:
            raise PayloadMissing(key)
        for start in range(0, len(self.data), 1024 * 1024):
            yield self.data[start : start + 1024 * 1024]

    def local_path(self, key: str) -> Path | None:
        return self.path

    def arrow_file(self, _key: str) -> ArrowFile | None:
        return None

    async def head(self, key: str) -> ObjectFacts | None:
        return None if self.data is None else ObjectFacts(key, len(self.data))


class Layers:
    def __init__(self, folder: Path) -> None:
        (folder / "shm").mkdir()
        options = SharedMemoryOptions(home_id="home", node_id="node", folder=folder / "shm")
        self.memory = MemoryResultCache()
        self.shared = SharedMemoryResultCache(options, utc_now)
        self.disk = DiskResultCache(folder / "disk", utc_now)

    def all(self) -> list[ResultCache]:
        return [self.memory, self.shared, self.disk]

    def hits(self) -> list[int]:
        return [layer.stats().hits for layer in self.all()]


def files_in(folder: Path) -> list[Path]:
    return list(folder.glob("*"))


def into_a_file(folder: Path) -> None:
    """What was a folder, or could become one, is of no use any more."""
    if folder.exists():
        folder.rmdir()
    folder.write_text("not a folder", encoding="ascii")
