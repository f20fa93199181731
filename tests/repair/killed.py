"""Upkeep that is killed in the middle. Run as a program: `gc` or `repair`, home, execution."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterable
from pathlib import Path

import msgspec

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.repairing import open_repairs, result_collector
from noetl.kernel.ids import ExecutionId
from noetl.ports.object_store import StoredObject
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.store import ResultStore
from noetl.runtime.results_gc import CollectionRequest
from tests.repair.scene import without_copies

DELETED_BEFORE_DEATH = 3


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(FilesystemObjectStore):
    """Dies after some objects are deleted, or when half of an object is written."""

    deleted = 0

    async def delete(self, key: str) -> None:
        if self.deleted == DELETED_BEFORE_DEATH:
            die()
        self.deleted += 1
        await super().delete(key)

    async def create(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = ""
    ) -> StoredObject:
        assert not isinstance(data, bytes)
        return await super().create(key, _half(data), media_type=media_type)

    async def replace(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = ""
    ) -> StoredObject:
        assert not isinstance(data, bytes)
        return await super().replace(key, _half(data), media_type=media_type)


async def _half(data: AsyncIterable[bytes]) -> AsyncIterable[bytes]:
    async for chunk in data:
        yield chunk[: len(chunk) // 2] * 3  # enough for a part of it to reach the disk
        yield b""
        die()


def dying(platform: Platform, folder: Path) -> Platform:
    objects = Dying(folder)
    known = platform.results
    results = ResultStore(objects, ObjectPayloadStore(objects), known.placement, known.chain)
    return msgspec.structs.replace(platform, objects=objects, results=results)


async def main(what: str, home: str, execution: str) -> None:
    settings = without_copies(Path(home))
    async with open_platform(settings, create=False) as platform:
        mortal = dying(platform, settings.payload_path)
        if what == "gc":
            collector = result_collector(mortal)
            await collector.collect(settings.scope, CollectionRequest(dry_run=False))
            return
        async with open_repairs(settings, mortal) as repairs:
            await repairs.verify(settings.scope, [ExecutionId(execution)], repair=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
