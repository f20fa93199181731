"""PayloadStore in a bucket or container, or in memory for trying things out.

A multipart upload that dies is invisible but keeps its parts: give the bucket a rule that aborts
incomplete uploads. S3 directory buckets list in no order and so cannot keep B7.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore

from noetl.adapters.objectstore.errors import missing, translated
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

PART_BYTES = 5 * 1024 * 1024  # the least that S3 takes
PARTS_MAX = 10_000  # of one upload to S3
PARTS_AT_ONCE_MAX = 4


class ObjectStorePayloadStore:
    """The address of a payload is its digest, so a stream is spooled before it can be sent."""

    def __init__(self, store: ObjectStore, *, spool_folder: Path | None = None) -> None:
        self._store = store
        self._spool_folder = str(spool_folder) if spool_folder else None

    async def put(
        self, scope: Scope, data: bytes | AsyncIterable[bytes], media_type: str
    ) -> PayloadReference:
        payload_prefix(scope)  # refuses a bad scope before anything is read
        if isinstance(data, bytes):
            fingerprint = await asyncio.to_thread(Fingerprint, data)
            reference = reference_to(scope, fingerprint.stored(), media_type)
            await self._upload(reference, data)
            return reference
        with SpooledTemporaryFile(max_size=PART_BYTES, dir=self._spool_folder) as spool:
            reference = reference_to(scope, await _spool_all(data, spool), media_type)
            await self._upload(reference, spool)
            return reference

    async def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        key = _key(reference)
        fingerprint = Fingerprint()
        held = b""
        with translated(reference.uri):
            with missing(reference.uri):
                found = await obstore.get_async(self._store, key)
            async for chunk in found.stream(min_chunk_size=CHUNK_BYTES):
                # The driver bounds chunks from below only: from memory, all comes in one.
                for start in range(0, len(chunk), CHUNK_BYTES):
                    if held:
                        yield held
                    held = chunk[start : start + CHUNK_BYTES]
                    await asyncio.to_thread(fingerprint.add, held)
        fingerprint.check(reference)
        if held:
            yield held

    async def exists(self, reference: PayloadReference) -> bool:
        key = _key(reference)
        try:
            with translated(reference.uri), missing(reference.uri):
                await obstore.head_async(self._store, key)
        except PayloadMissing:
            return False
        return True

    async def delete(self, reference: PayloadReference) -> None:
        key = _key(reference)
        # Some stores mind when there is nothing to delete.
        with suppress(PayloadMissing), translated(reference.uri), missing(reference.uri):
            await obstore.delete_async(self._store, key)

    async def list_stored(
        self, scope: Scope, *, after_sha256: str = "", limit: int = LIST_PAYLOADS_MAX
    ) -> list[StoredPayload]:
        prefix = payload_prefix(scope)
        offset = payload_key(scope, after_sha256) if after_sha256 else None
        limit = min(limit, LIST_PAYLOADS_MAX)
        stored: list[StoredPayload] = []
        with translated(prefix):
            async for page in obstore.list(self._store, prefix, offset=offset, chunk_size=limit):
                names = [(found["path"].rpartition("/")[2], found["size"]) for found in page]
                stored += [StoredPayload(name, size) for name, size in names if is_digest(name)]
                if len(stored) >= limit:
                    break
        return stored[:limit]

    async def close(self) -> None:
        """The driver closes its connections by itself."""

    async def _upload(self, reference: PayloadReference, body: bytes | IO[bytes]) -> None:
        # A small put says by itself that the object is there; a large one is worth asking first.
        if reference.byte_length > CHUNK_BYTES and await self.exists(reference):
            return
        with translated(reference.uri):
            if reference.byte_length <= PART_BYTES:
                await self._send_whole(reference, body)
            else:
                await self._send_parts(reference, body)

    async def _send_whole(self, reference: PayloadReference, body: bytes | IO[bytes]) -> None:
        with suppress(AlreadyExistsError):
            await obstore.put_async(
                self._store,
                _key(reference),
                body,
                attributes={"Content-Type": _content_type(reference)},
                mode="create",
            )

    async def _send_parts(self, reference: PayloadReference, body: bytes | IO[bytes]) -> None:
        # No store takes a condition here: racers overwrite each other, with the same bytes.
        await obstore.put_async(
            self._store,
            _key(reference),
            body,
            attributes={"Content-Type": _content_type(reference)},
            use_multipart=True,
            chunk_size=part_bytes(reference.byte_length),
            max_concurrency=PARTS_AT_ONCE_MAX,
        )


def part_bytes(byte_length: int) -> int:
    """Parts as small as the limit on their number allows: memory holds a few of them."""
    return max(PART_BYTES, -(-byte_length // PARTS_MAX))


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


def _content_type(reference: PayloadReference) -> str:
    """For readers that bypass us. In a header the driver does not survive, say, a line break."""
    plain = reference.media_type.isascii() and reference.media_type.isprintable()
    return reference.media_type if plain else "application/octet-stream"


def _key(reference: PayloadReference) -> str:
    return payload_key(reference.scope, reference.sha256)
