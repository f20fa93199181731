"""ObjectStore in a folder, one file per key: a local disk, or a volume that machines share."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar, TypeVarTuple

from noetl.adapters.filesystem.draft import Draft, sweep
from noetl.adapters.filesystem.object_files import (
    delete_file,
    facts_below,
    facts_of,
    fingerprint_of,
)
from noetl.domain.payload import Fingerprint
from noetl.kernel.errors import ObjectDiffers, ObjectMissing, StoreUnavailable
from noetl.ports.object_store import (
    CHUNK_BYTES,
    LIST_OBJECTS_MAX,
    OCTETS,
    ArrowFile,
    ObjectFacts,
    StoredObject,
    check_key,
    check_prefix,
)

THREADS_MAX = 8
DRAFT_SECONDS_MAX = 24 * 60 * 60.0

_DRAFTS = ".drafts"  # no part of a key begins with a dot
_WRITES_PER_SWEEP = 1_000

_Publish = Callable[[Draft, str, Fingerprint], StoredObject]
_Arguments = TypeVarTuple("_Arguments")
_Answer = TypeVar("_Answer")


class FilesystemObjectStore:
    """Many processes may share one root. Needs a file system with hard links."""

    def __init__(self, root: Path, *, draft_seconds_max: float = DRAFT_SECONDS_MAX) -> None:
        self._root = root.absolute()
        self._drafts = self._root / _DRAFTS
        self._draft_seconds_max = draft_seconds_max
        self._writes = 0
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="objects")

    async def create(
        self,
        key: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str = OCTETS,  # noqa: ARG002 - nothing here keeps it
    ) -> StoredObject:
        check_key(key)
        if isinstance(data, bytes):
            known = await self._in_thread(self._known, key, data)
            if known is not None:
                return known
        return await self._write(key, data, self._publish)

    async def replace(
        self,
        key: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str = OCTETS,  # noqa: ARG002 - nothing here keeps it
    ) -> StoredObject:
        check_key(key)
        return await self._write(key, data, self._supersede)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        with ExitStack() as files:
            file = await self._in_thread(self._open, key, files)
            while block := await self._in_thread(file.read, CHUNK_BYTES):
                yield block

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        def read() -> bytes:
            with ExitStack() as files:
                file = self._open(key, files)
                file.seek(start)
                return file.read(length)

        return await self._in_thread(read)

    async def head(self, key: str) -> ObjectFacts | None:
        check_key(key)
        return await self._in_thread(facts_of, key, self._root / key)

    async def list_objects(
        self, prefix: str, *, after: str = "", limit: int = LIST_OBJECTS_MAX
    ) -> list[ObjectFacts]:
        check_prefix(prefix)
        found = facts_below(self._root / prefix, prefix, after)
        return await self._in_thread(list, islice(found, min(limit, LIST_OBJECTS_MAX)))

    async def delete(self, key: str) -> None:
        check_key(key)
        await self._in_thread(delete_file, self._root / key)

    @property
    def is_direct(self) -> bool:
        return True

    def url(self, key: str) -> str:
        check_key(key)
        return str(self._root / key)

    def local_path(self, key: str) -> Path | None:
        check_key(key)
        return self._root / key

    def arrow_file(self, key: str) -> ArrowFile | None:
        check_key(key)
        # Slow to import, and most programs never scan a table.
        from pyarrow.fs import LocalFileSystem  # noqa: PLC0415

        return ArrowFile(LocalFileSystem(use_mmap=True), str(self._root / key))

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    async def _write(
        self, key: str, data: bytes | AsyncIterable[bytes], publish: _Publish
    ) -> StoredObject:
        if self._writes % _WRITES_PER_SWEEP == 0:
            await self._in_thread(sweep, self._drafts, self._draft_seconds_max)
        self._writes += 1
        draft, fingerprint = Draft(self._drafts), Fingerprint()
        try:
            async for block in _blocks(data):
                await self._in_thread(_write_block, draft, fingerprint, block)
            return await self._in_thread(publish, draft, key, fingerprint)
        finally:
            await self._in_thread(draft.discard)

    def _known(self, key: str, data: bytes) -> StoredObject | None:
        """What is there already is not written again."""
        if facts_of(key, self._root / key) is None:
            return None
        return self._same(key, Fingerprint(data))

    def _publish(self, draft: Draft, key: str, given: Fingerprint) -> StoredObject:
        if draft.publish(self._root / key):
            return _stored(key, given)
        return self._same(key, given)

    def _supersede(self, draft: Draft, key: str, given: Fingerprint) -> StoredObject:
        draft.supersede(self._root / key)
        return _stored(key, given)

    def _same(self, key: str, given: Fingerprint) -> StoredObject:
        stored, expected = fingerprint_of(self._root / key).stored(), given.stored()
        if stored != expected:
            raise ObjectDiffers(self.url(key), stored=stored.sha256, given=expected.sha256)
        return _stored(key, given)

    def _open(self, key: str, files: ExitStack) -> BinaryIO:
        check_key(key)
        try:
            return files.enter_context((self._root / key).open("rb"))
        except (FileNotFoundError, IsADirectoryError):
            raise ObjectMissing(self.url(key)) from None

    async def _in_thread(
        self, work: Callable[[*_Arguments], _Answer], *arguments: *_Arguments
    ) -> _Answer:
        running = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # The caller closes and removes files next: the thread must have let go of them.
            await asyncio.wait([running])
            raise
        except OSError as error:
            raise StoreUnavailable(
                f"objects in {self._root}: {error.strerror or error};"
                " give the folder space and permissions, then try again"
            ) from error


async def _blocks(data: bytes | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(data, bytes):
        yield data
        return
    waiting = bytearray()  # small chunks are not worth a thread each
    async for chunk in data:
        waiting += chunk
        if len(waiting) >= CHUNK_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _write_block(draft: Draft, fingerprint: Fingerprint, block: bytes) -> None:
    fingerprint.add(block)
    draft.write(block)


def _stored(key: str, fingerprint: Fingerprint) -> StoredObject:
    stored = fingerprint.stored()
    return StoredObject(key, stored.sha256, stored.byte_length)
