"""ObjectStore through a server: for workers that cannot reach the store themselves."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from noetl.client.connection import ANSWER_SECONDS_MAX, Connection
from noetl.kernel.errors import LogUnavailable, ObjectMissing, StoreUnavailable
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

PATH = "/api/internal/objects"
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_read=ANSWER_SECONDS_MAX)
"""However long a large object takes, something of it must come."""


class HttpObjectStore:
    """The server's promises; what cannot be had is the line to it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def is_direct(self) -> bool:
        return False

    def url(self, key: str) -> str:
        check_key(key)
        return f"{self._connection.server}{PATH}/{key}"

    def local_path(self, key: str) -> Path | None:
        check_key(key)
        return None

    def arrow_file(self, key: str) -> ArrowFile | None:
        check_key(key)
        return None

    async def create(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        return await self._put(key, data, {"media_type": media_type})

    async def replace(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        return await self._put(key, data, {"media_type": media_type, "replace": "true"})

    async def read(self, key: str) -> AsyncIterator[bytes]:
        async with self._asked("GET", key, {}) as response:
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                yield chunk

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        wanted = {"params": {"start": str(start), "length": str(length)}}
        async with self._asked("GET", key, wanted) as response:
            return await response.read()

    async def head(self, key: str) -> ObjectFacts | None:
        try:
            async with self._asked("GET", key, {"params": {"facts": "true"}}) as response:
                return msgspec.json.decode(await response.read(), type=ObjectFacts)
        except ObjectMissing:
            return None

    async def list_objects(
        self, prefix: str, *, after: str = "", limit: int = LIST_OBJECTS_MAX
    ) -> list[ObjectFacts]:
        check_prefix(prefix)
        query: dict[str, str | int] = {"prefix": prefix, "after": after, "limit": limit}
        with _store_trouble():
            return await self._connection.get(PATH, list[ObjectFacts], query)

    async def delete(self, key: str) -> None:
        async with self._asked("DELETE", key, {}) as response:
            await response.read()

    async def close(self) -> None:
        """The connection is closed by whoever opened it."""

    async def _put(
        self, key: str, data: bytes | AsyncIterable[bytes], query: dict[str, str]
    ) -> StoredObject:
        source = _Source(data)
        headers = {"Content-Type": OCTETS}
        request = {"params": query, "data": source.blocks(), "headers": headers}
        try:
            async with self._asked("PUT", key, request) as response:
                return msgspec.json.decode(await response.read(), type=StoredObject)
        except StoreUnavailable:
            if source.error is not None:  # the line was cut because there was nothing to send
                raise source.error from None
            raise

    @asynccontextmanager
    async def _asked(
        self, method: str, key: str, request: dict[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        check_key(key)
        path = f"{PATH}/{quote(key)}"
        with _store_trouble():
            asked = self._connection.opened(method, path, {"timeout": TIMEOUT, **request})
            async with asked as response:
                yield response


class _Source:
    """Bytes on their way out; remembers why they stopped coming."""

    def __init__(self, data: bytes | AsyncIterable[bytes]) -> None:
        self._data = data
        self.error: Exception | None = None

    async def blocks(self) -> AsyncIterator[bytes]:
        if isinstance(self._data, bytes):
            for block in blocks_of(self._data):
                yield block
            return
        try:
            async for chunk in self._data:
                for block in blocks_of(chunk):
                    yield block
        except Exception as error:
            self.error = error
            raise asyncio.IncompleteReadError(b"", None) from error


@contextmanager
def _store_trouble() -> Iterator[None]:
    """A server that does not answer is a store that does not."""
    try:
        yield
    except LogUnavailable as error:
        raise StoreUnavailable(str(error)) from error
