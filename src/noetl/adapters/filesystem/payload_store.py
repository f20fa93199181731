"""PayloadStore in a folder: `<tenant>/<organization>/<2 digits>/<2 digits>/<digest>`."""

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar, TypeVarTuple

from noetl.adapters.filesystem.draft import Draft, sweep, sync_folder
from noetl.domain.payload import (
    Fingerprint,
    PayloadReference,
    StoredPayload,
    is_digest,
    payload_key,
    payload_prefix,
    reference_to,
)
from noetl.kernel.errors import PayloadMissing, StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import CHUNK_BYTES, LIST_PAYLOADS_MAX

THREADS_MAX = 8
DRAFT_SECONDS_MAX = 24 * 60 * 60.0

_DRAFTS = ".drafts"  # no tenant's folder begins with a dot: `payload_prefix` escapes it
_PUTS_PER_SWEEP = 1_000

_Arguments = TypeVarTuple("_Arguments")
_Answer = TypeVar("_Answer")


class FilesystemPayloadStore:
    """Many processes may share one root. Needs a file system with hard links."""

    def __init__(self, root: Path, *, draft_seconds_max: float = DRAFT_SECONDS_MAX) -> None:
        self._root = root
        self._drafts = root / _DRAFTS
        self._draft_seconds_max = draft_seconds_max
        self._puts = 0
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="payloads")

    async def put(
        self, scope: Scope, data: bytes | AsyncIterable[bytes], media_type: str
    ) -> PayloadReference:
        payload_prefix(scope)  # refuses a bad scope before anything is read
        if self._puts % _PUTS_PER_SWEEP == 0:
            await self._in_thread(sweep, self._drafts, self._draft_seconds_max)
        self._puts += 1
        if isinstance(data, bytes):
            stored = await self._in_thread(self._put_whole, scope, data)
        else:
            stored = await self._put_stream(scope, data)
        return reference_to(scope, stored, media_type)

    async def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        path = self._path(reference.scope, reference.sha256)
        fingerprint = Fingerprint()
        with ExitStack() as files:
            file = await self._in_thread(_open, path, reference.uri, files)
            held = await self._in_thread(_read, file, fingerprint)
            while len(held) == CHUNK_BYTES:  # a shorter block is the last
                block = await self._in_thread(_read, file, fingerprint)
                if not block:
                    break
                yield held
                held = block
            fingerprint.check(reference)
            if held:
                yield held

    async def exists(self, reference: PayloadReference) -> bool:
        path = self._path(reference.scope, reference.sha256)
        return await self._in_thread(_is_stored, path)

    async def delete(self, reference: PayloadReference) -> None:
        path = self._path(reference.scope, reference.sha256)
        await self._in_thread(_delete, path)

    async def list_stored(
        self, scope: Scope, *, after_sha256: str = "", limit: int = LIST_PAYLOADS_MAX
    ) -> list[StoredPayload]:
        stored = _stored_below(self._root / payload_prefix(scope), after_sha256)
        return await self._in_thread(list, islice(stored, min(limit, LIST_PAYLOADS_MAX)))

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    def _path(self, scope: Scope, sha256: str) -> Path:
        return self._root / payload_key(scope, sha256)

    def _put_whole(self, scope: Scope, data: bytes) -> StoredPayload:
        stored = Fingerprint(data).stored()
        target = self._path(scope, stored.sha256)
        if not _is_safe(target):
            draft = Draft(self._drafts)
            try:
                draft.write(data)
                draft.publish(target)
            finally:
                draft.discard()
        return stored

    async def _put_stream(self, scope: Scope, data: AsyncIterable[bytes]) -> StoredPayload:
        draft = Draft(self._drafts)
        fingerprint = Fingerprint()
        waiting = bytearray()  # small chunks are not worth a thread each
        try:
            async for chunk in data:
                waiting += chunk
                if len(waiting) >= CHUNK_BYTES:
                    await self._in_thread(_write, draft, fingerprint, bytes(waiting))
                    waiting.clear()
            await self._in_thread(_write, draft, fingerprint, bytes(waiting))
            stored = fingerprint.stored()
            await self._in_thread(_publish, draft, self._path(scope, stored.sha256))
            return stored
        finally:
            await self._in_thread(draft.discard)

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
                f"payloads in {self._root}: {error.strerror or error};"
                " give the folder space and permissions, then try again"
            ) from error


def _write(draft: Draft, fingerprint: Fingerprint, block: bytes) -> None:
    fingerprint.add(block)
    draft.write(block)


def _publish(draft: Draft, target: Path) -> None:
    if not _is_safe(target):
        draft.publish(target)


def _is_safe(path: Path) -> bool:
    """Stored already, and sure to stay: the one who put it may not have got to the sync yet."""
    if not _is_stored(path):
        return False
    sync_folder(path.parent)
    return True


def _is_stored(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _open(path: Path, uri: str, files: ExitStack) -> BinaryIO:
    try:
        return files.enter_context(path.open("rb"))
    except FileNotFoundError:
        raise PayloadMissing(uri) from None


def _read(file: BinaryIO, fingerprint: Fingerprint) -> bytes:
    block = file.read(CHUNK_BYTES)
    fingerprint.add(block)
    return block


def _delete(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
        sync_folder(path.parent)  # the folder stays: a put may be on its way into it


def _stored_below(folder: Path, after_sha256: str) -> Iterator[StoredPayload]:
    for outer in _entries(folder):
        if outer.name < after_sha256[:2] or not outer.is_dir():
            continue
        for inner in _entries(Path(outer.path)):
            if outer.name + inner.name < after_sha256[:4] or not inner.is_dir():
                continue
            for entry in _entries(Path(inner.path)):
                if entry.name > after_sha256 and is_digest(entry.name):
                    with suppress(FileNotFoundError):  # deleted while we looked
                        yield StoredPayload(entry.name, entry.stat().st_size)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
