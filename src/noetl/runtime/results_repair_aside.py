"""An object store whose writes land aside: for running again what must not change anything."""

from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

from noetl.ports.object_store import (
    LIST_OBJECTS_MAX,
    OCTETS,
    ArrowFile,
    ObjectFacts,
    ObjectStore,
    StoredObject,
)


class AsideObjectStore:
    """Reads what was written aside, and below that the real objects; those are never touched."""

    def __init__(self, real: ObjectStore, aside: ObjectStore) -> None:
        self._real = real
        self._aside = aside
        self._written: set[str] = set()

    def written(self, key: str) -> AsyncIterator[bytes] | None:
        """What came of running again, if it came to this object."""
        return self._aside.read(key) if key in self._written else None

    async def forget(self) -> None:
        """Nothing of one run is seen by the next."""
        while self._written:
            await self._aside.delete(self._written.pop())

    async def create(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        return await self.replace(key, data, media_type=media_type)

    async def replace(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        self._written.add(key)
        return await self._aside.replace(key, data, media_type=media_type)

    def read(self, key: str) -> AsyncIterator[bytes]:
        return self._of(key).read(key)

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        return await self._of(key).read_range(key, start, length)

    async def head(self, key: str) -> ObjectFacts | None:
        return await self._of(key).head(key)

    async def list_objects(
        self, prefix: str, *, after: str = "", limit: int = LIST_OBJECTS_MAX
    ) -> list[ObjectFacts]:
        return await self._real.list_objects(prefix, after=after, limit=limit)

    async def delete(self, key: str) -> None:
        """Only of what lies aside."""
        await self._aside.delete(key)
        self._written.discard(key)

    @property
    def is_direct(self) -> bool:
        return self._real.is_direct and self._aside.is_direct

    def url(self, key: str) -> str:
        return self._of(key).url(key)

    def local_path(self, key: str) -> Path | None:
        return self._of(key).local_path(key)

    def arrow_file(self, key: str) -> ArrowFile | None:
        return self._of(key).arrow_file(key)

    async def close(self) -> None:
        """The real objects are closed by whoever opened them."""
        await self._aside.close()

    def _of(self, key: str) -> ObjectStore:
        return self._aside if key in self._written else self._real
