"""ObjectStore in a bucket or container, or in the driver's memory for trying things out.

A multipart upload that dies is invisible but keeps its parts: give the bucket a rule that aborts
incomplete uploads. S3 directory buckets list in no order and so cannot keep O7.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore as Driver

from noetl.adapters.objectstore.errors import missing, translated
from noetl.domain.payload import Fingerprint
from noetl.kernel.errors import ObjectDiffers, ObjectMissing, StoreUnavailable
from noetl.kernel.instant import from_datetime
from noetl.ports.object_store import (
    CHUNK_BYTES,
    LIST_OBJECTS_MAX,
    OCTETS,
    ArrowFile,
    ObjectFacts,
    StoredObject,
    blocks_of,
    check_key,
    check_prefix,
)

PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE_MAX = 4  # with one that fills up: well below IN_FLIGHT_BYTES_MAX

_Mode = Literal["create", "overwrite"]


class BucketObjectStore:
    """`url` is the address that the driver's store was made for, without its options."""

    def __init__(
        self,
        driver: Driver,
        url: str = "memory://",
        arrow_file: Callable[[str], ArrowFile] | None = None,
    ) -> None:
        self._driver = driver
        self._url = url.removesuffix("/")
        self._arrow_file = arrow_file

    async def create(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        check_key(key)
        first, rest = await _parted(data)
        if rest is None:
            return await self._create_whole(key, first, media_type)
        given = Fingerprint()
        # No store takes a condition on an upload in parts.
        if await self.head(key) is None:
            try:
                return await self._send_parts(key, rest, media_type, given)
            except StoreUnavailable:
                # Azure drops the parts of all writers but the first one to come to an end.
                if await self.head(key) is None:
                    raise
        async for block in rest:
            await asyncio.to_thread(given.add, block)
        return await self._same(key, given)

    async def replace(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        check_key(key)
        first, rest = await _parted(data)
        if rest is not None:
            return await self._send_parts(key, rest, media_type, Fingerprint())
        given = await asyncio.to_thread(Fingerprint, first)
        with translated(self.url(key)):
            await self._send_whole(key, first, media_type, "overwrite")
        return _stored(key, given)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        check_key(key)
        with translated(self.url(key)):
            with missing(self.url(key)):
                found = await obstore.get_async(self._driver, key)
            async for chunk in found.stream(min_chunk_size=CHUNK_BYTES):
                # The driver bounds chunks from below only: from memory, all comes in one.
                for start in range(0, len(chunk), CHUNK_BYTES):
                    yield bytes(chunk[start : start + CHUNK_BYTES])

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        check_key(key)
        if length > 0:
            try:
                return await self._range(key, start, length)
            except StoreUnavailable:
                # No store has a word of its own for an object that ends before the range.
                found = await self.head(key)
                if found is None or start < found.byte_length:
                    raise
        elif await self.head(key) is None:
            raise ObjectMissing(self.url(key))
        return b""

    async def head(self, key: str) -> ObjectFacts | None:
        check_key(key)
        try:
            with translated(self.url(key)), missing(self.url(key)):
                found = await obstore.head_async(self._driver, key)
        except ObjectMissing:
            return None
        return ObjectFacts(key, found["size"], from_datetime(found["last_modified"]))

    async def list_objects(
        self, prefix: str, *, after: str = "", limit: int = LIST_OBJECTS_MAX
    ) -> list[ObjectFacts]:
        check_prefix(prefix)
        limit = min(limit, LIST_OBJECTS_MAX)
        objects: list[ObjectFacts] = []
        with translated(f"{self._url}/{prefix}"):
            pages = obstore.list(
                self._driver, prefix or None, offset=after or None, chunk_size=limit
            )
            async for page in pages:
                objects += [
                    ObjectFacts(found["path"], found["size"], from_datetime(found["last_modified"]))
                    for found in page
                ]
                if len(objects) >= limit:
                    break
        return objects[:limit]

    async def delete(self, key: str) -> None:
        check_key(key)
        # Some stores mind when there is nothing to delete.
        with suppress(ObjectMissing), translated(self.url(key)), missing(self.url(key)):
            await obstore.delete_async(self._driver, key)

    @property
    def is_direct(self) -> bool:
        return self._arrow_file is not None

    def url(self, key: str) -> str:
        check_key(key)
        return f"{self._url}/{key}"

    def local_path(self, key: str) -> Path | None:
        check_key(key)
        return None

    def arrow_file(self, key: str) -> ArrowFile | None:
        check_key(key)
        return None if self._arrow_file is None else self._arrow_file(key)

    async def close(self) -> None:
        """The driver closes its connections by itself."""

    async def _range(self, key: str, start: int, length: int) -> bytes:
        with translated(self.url(key)), missing(self.url(key)):
            found = await obstore.get_range_async(self._driver, key, start=start, length=length)
        return bytes(found)

    async def _create_whole(self, key: str, data: bytes, media_type: str) -> StoredObject:
        given = await asyncio.to_thread(Fingerprint, data)
        taken = False
        with translated(self.url(key)):
            try:
                await self._send_whole(key, data, media_type, "create")
            except AlreadyExistsError:
                taken = True
        return await self._same(key, given) if taken else _stored(key, given)

    async def _send_whole(self, key: str, data: bytes, media_type: str, mode: _Mode) -> None:
        await obstore.put_async(
            self._driver,
            key,
            data,
            attributes={"Content-Type": _header(media_type)},
            mode=mode,
            use_multipart=False,
        )

    async def _send_parts(
        self, key: str, blocks: AsyncIterator[bytes], media_type: str, given: Fingerprint
    ) -> StoredObject:
        async def passing() -> AsyncIterator[bytes]:
            async for block in blocks:
                await asyncio.to_thread(given.add, block)
                yield block

        with translated(self.url(key)):
            await obstore.put_async(
                self._driver,
                key,
                passing(),
                attributes={"Content-Type": _header(media_type)},
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE_MAX,
            )
        return _stored(key, given)

    async def _same(self, key: str, given: Fingerprint) -> StoredObject:
        stored = Fingerprint()
        async for chunk in self.read(key):
            await asyncio.to_thread(stored.add, chunk)
        if stored.stored() != given.stored():
            raise ObjectDiffers(
                self.url(key), stored=stored.stored().sha256, given=given.stored().sha256
            )
        return _stored(key, given)


async def _parted(
    data: bytes | AsyncIterable[bytes],
) -> tuple[bytes, AsyncIterator[bytes] | None]:
    """All of it when one part holds it, else everything again in blocks."""
    if isinstance(data, bytes):
        return (data, None) if len(data) <= PART_BYTES else (b"", _blocks(data))
    source, begun = aiter(data), bytearray()
    async for chunk in source:
        begun += chunk
        if len(begun) > PART_BYTES:
            return b"", _blocks(bytes(begun), source)
    return bytes(begun), None


async def _blocks(begun: bytes, source: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    for block in blocks_of(begun):
        yield block
    if source is None:
        return
    waiting = bytearray()  # small chunks are not worth a turn of the driver each
    async for chunk in source:
        waiting += chunk
        if len(waiting) >= CHUNK_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def _header(media_type: str) -> str:
    """For readers that bypass us. In a header the driver does not survive, say, a line break."""
    return media_type if media_type.isascii() and media_type.isprintable() else OCTETS


def _stored(key: str, fingerprint: Fingerprint) -> StoredObject:
    stored = fingerprint.stored()
    return StoredObject(key, stored.sha256, stored.byte_length)
