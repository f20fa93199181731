"""PayloadStore over any ObjectStore: bytes whose key is their digest, below their scope.

The address of a stream is known when all of it has been read: it is spooled to a file first, in
bounded memory. The file has no name, so nothing is left of it when the process dies.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from noetl.domain.payload import (
    Fingerprint,
    PayloadReference,
    StoredPayload,
    is_digest,
    payload_key,
    payload_prefix,
    reference_to,
)
from noetl.kernel.errors import ObjectDiffers, ObjectMissing, PayloadMissing, StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.ports.object_store import CHUNK_BYTES, ObjectStore
from noetl.ports.payload_store import LIST_PAYLOADS_MAX

SPOOL_MEMORY_BYTES_MAX = 8 * CHUNK_BYTES


class ObjectPayloadStore:
    """Other things may lie in the same store: payloads are known by the form of their keys."""

    def __init__(self, objects: ObjectStore, *, spool_folder: Path | None = None) -> None:
        self._objects = objects
        self._spool_folder = str(spool_folder) if spool_folder else None

    async def put(
        self, scope: Scope, data: bytes | AsyncIterable[bytes], media_type: str
    ) -> PayloadReference:
        payload_prefix(scope)  # refuses a bad scope before anything is read
        if isinstance(data, bytes):
            fingerprint = Fingerprint()
            await _add(fingerprint, data, len(data))
            reference = reference_to(scope, fingerprint.stored(), media_type)
            await self._create(reference, data)
            return reference
        with SpooledTemporaryFile(SPOOL_MEMORY_BYTES_MAX, dir=self._spool_folder) as spool:
            reference = reference_to(scope, await _spool_all(data, spool), media_type)
            await self._create(reference, _spooled(spool))
            return reference

    async def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        fingerprint = Fingerprint()
        held = b""
        try:
            async for chunk in self._objects.read(_key(reference)):
                if held:
                    yield held
                held = chunk
                await _add(fingerprint, held, reference.byte_length)
        except ObjectMissing as error:
            raise PayloadMissing(reference.uri) from error
        fingerprint.check(reference.uri, reference.sha256)
        if held:
            yield held

    async def exists(self, reference: PayloadReference) -> bool:
        return await self._objects.head(_key(reference)) is not None

    async def delete(self, reference: PayloadReference) -> None:
        await self._objects.delete(_key(reference))

    async def list_stored(
        self, scope: Scope, *, after_sha256: str = "", limit: int = LIST_PAYLOADS_MAX
    ) -> list[StoredPayload]:
        prefix = payload_prefix(scope)
        after = payload_key(scope, after_sha256) if after_sha256 else ""
        limit = min(limit, LIST_PAYLOADS_MAX)
        stored: list[StoredPayload] = []
        while len(stored) < limit:
            page = await self._objects.list_objects(prefix, after=after, limit=limit)
            names = [(facts.key.rpartition("/")[2], facts.byte_length) for facts in page]
            stored += [StoredPayload(name, size) for name, size in names if is_digest(name)]
            if len(page) < limit:
                break
            after = page[-1].key
        return stored[:limit]

    async def close(self) -> None:
        """The objects are closed by whoever opened them."""

    async def _create(
        self, reference: PayloadReference, data: bytes | AsyncIterable[bytes]
    ) -> None:
        # A small one says by itself that it is there; a large one is worth asking first.
        if reference.byte_length > CHUNK_BYTES and await self.exists(reference):
            return
        with suppress(ObjectDiffers):  # damaged: reading says so, and repair is not our business
            await self._objects.create(_key(reference), data, media_type=reference.media_type)


async def _add(fingerprint: Fingerprint, block: bytes, byte_length: int) -> None:
    """A large payload would keep others waiting; a small one is not worth a thread."""
    if byte_length <= CHUNK_BYTES:
        fingerprint.add(block)
    else:
        await asyncio.to_thread(fingerprint.add, block)


async def _spool_all(data: AsyncIterable[bytes], spool: IO[bytes]) -> StoredPayload:
    fingerprint = Fingerprint()
    waiting = bytearray()  # small chunks are not worth a thread each
    async for chunk in data:
        waiting += chunk
        if len(waiting) >= CHUNK_BYTES:
            await _spool(spool, fingerprint, bytes(waiting))
            waiting.clear()
    await _spool(spool, fingerprint, bytes(waiting))
    spool.seek(0)
    return fingerprint.stored()


async def _spool(spool: IO[bytes], fingerprint: Fingerprint, block: bytes) -> None:
    def write() -> None:
        fingerprint.add(block)
        spool.write(block)

    try:
        await asyncio.to_thread(write)
    except OSError as error:
        raise StoreUnavailable(
            f"no room to spool a payload: {error.strerror or error}; free space, then try again"
        ) from error


async def _spooled(spool: IO[bytes]) -> AsyncIterator[bytes]:
    while block := await asyncio.to_thread(spool.read, CHUNK_BYTES):
        yield block


def _key(reference: PayloadReference) -> str:
    return payload_key(reference.scope, reference.sha256)
