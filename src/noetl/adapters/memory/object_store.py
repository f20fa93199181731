"""ObjectStore in a dict: the reference adapter. It cannot keep O4 and O11: it holds the bytes."""

from bisect import bisect_right
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

from noetl.domain.payload import Fingerprint
from noetl.kernel.errors import ObjectDiffers, ObjectMissing
from noetl.ports.object_store import (
    LIST_OBJECTS_MAX,
    OCTETS,
    ArrowFile,
    ObjectFacts,
    StoredObject,
    blocks_of,
    check_key,
    check_prefix,
)


class MemoryObjectStore:
    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def create(
        self,
        key: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str = OCTETS,  # noqa: ARG002 - nothing here keeps it
    ) -> StoredObject:
        check_key(key)
        whole = await _whole(data)
        given = _stored(key, whole)
        held = self._objects.setdefault(key, whole)
        if held != whole:
            raise ObjectDiffers(self.url(key), stored=_stored(key, held).sha256, given=given.sha256)
        return given

    async def replace(
        self,
        key: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str = OCTETS,  # noqa: ARG002 - nothing here keeps it
    ) -> StoredObject:
        check_key(key)
        self._objects[key] = whole = await _whole(data)
        return _stored(key, whole)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        whole = self._found(key)
        for block in blocks_of(whole):
            yield block

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        return self._found(key)[start : start + length]

    async def head(self, key: str) -> ObjectFacts | None:
        check_key(key)
        whole = self._objects.get(key)
        return None if whole is None else ObjectFacts(key, len(whole))

    async def list_objects(
        self, prefix: str, *, after: str = "", limit: int = LIST_OBJECTS_MAX
    ) -> list[ObjectFacts]:
        check_prefix(prefix)
        keys = sorted(key for key in self._objects if key.startswith(prefix))
        first = bisect_right(keys, after)
        page = keys[first : first + min(limit, LIST_OBJECTS_MAX)]
        return [ObjectFacts(key, len(self._objects[key])) for key in page]

    async def delete(self, key: str) -> None:
        check_key(key)
        self._objects.pop(key, None)

    @property
    def is_direct(self) -> bool:
        return False

    def url(self, key: str) -> str:
        check_key(key)
        return f"memory:///{key}"

    def local_path(self, key: str) -> Path | None:
        check_key(key)
        return None

    def arrow_file(self, key: str) -> ArrowFile | None:
        check_key(key)
        return None

    async def close(self) -> None:
        """Nothing to give back."""

    def _found(self, key: str) -> bytes:
        check_key(key)
        whole = self._objects.get(key)
        if whole is None:
            raise ObjectMissing(self.url(key))
        return whole


async def _whole(data: bytes | AsyncIterable[bytes]) -> bytes:
    return data if isinstance(data, bytes) else b"".join([chunk async for chunk in data])


def _stored(key: str, whole: bytes) -> StoredObject:
    stored = Fingerprint(whole).stored()
    return StoredObject(key, stored.sha256, stored.byte_length)
