"""Bytes under names in a folder, a bucket or memory: all that a kind of store has to know."""

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from noetl.kernel.errors import ObjectKeyInvalid
from noetl.kernel.instant import Instant

CHUNK_BYTES = 1024 * 1024
LIST_OBJECTS_MAX = 1_000
IN_FLIGHT_BYTES_MAX = 64 * 1024 * 1024
"""What one call holds of the bytes that pass through it."""

KEY_LENGTH_MAX = 1_024  # of S3 and Azure
PART_LENGTH_MAX = 255  # of a file's name
OCTETS = "application/octet-stream"

Sliceable = TypeVar("Sliceable", bytes, memoryview)

# A dot at an edge means something else to file systems and to Azure, a backslash to both.
_KEY_PART = re.compile(r"(?!\.)[!-.0-\[\]-~]+(?<!\.)")


class StoredObject(msgspec.Struct, frozen=True):
    """What was written, by its digest."""

    key: str
    sha256: str
    byte_length: int


class ObjectFacts(msgspec.Struct, frozen=True):
    """What a store knows about an object without reading it."""

    key: str
    byte_length: int
    modified: Instant | None = None  # by the clock of the store


class ArrowFile(NamedTuple):
    """Where pyarrow, and DuckDB through it, find an object without a copy of it."""

    filesystem: Any  # a `pyarrow.fs.FileSystem`; the package ships no types
    path: str


class ObjectPlaces(Protocol):
    """Where other programs find an object. Nothing is looked up: it need not be there."""

    @property
    def is_direct(self) -> bool:
        """Whether `local_path` or `arrow_file` lead to objects; else only `read` does."""
        ...

    def url(self, key: str) -> str:
        """The absolute path of a file, or `s3://bucket/key`, `gs://…`, `az://…`."""
        ...

    def local_path(self, key: str) -> Path | None:
        """The file itself, to be read or mapped and never written; None when it is elsewhere."""
        ...

    def arrow_file(self, key: str) -> ArrowFile | None:
        """None: only `read` leads to the bytes."""
        ...


class ObjectStore(ObjectPlaces, Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    O1  what is created is what is read, whole or by range, and the answer names the sha256 and
        the length of exactly those bytes
    O2  an object never changes: creating it again, also by many at once, with equal bytes leaves
        it as it is; other bytes are ObjectDiffers
    O3  a create or replace that fails or dies half way leaves what was there before it
    O4  memory stays bounded both ways, however large the object
    O5  reading what is not there is ObjectMissing, and `head` of it is None
    O6  a replaced object has the old bytes or the new ones, at any moment all of them
    O7  `list_objects` names every object below a prefix exactly once, page by page, in an order
        that depends on the keys alone; names in one folder rise
    O8  deleting removes that object only, and deleting again is not an error
    O9  what is not a key is ObjectKeyInvalid, before anything is read or written
    O10 `url`, `local_path` and `arrow_file` lead to the bytes that `read` gives
    O11 what `create` and `replace` returned for, and what `head` has seen, survives a power cut

    Keys are parts between slashes: printable ASCII without spaces and backslashes, and no dot at
    the edge of a part. A key is not the folder of another one.
    """

    async def create(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        """Store the bytes. An error that `data` raises comes out as it is.

        The media type is for programs that read the store without us. Two writers of one key that
        is longer than a part of an upload, at one moment and with other bytes, are not told
        apart in a bucket: give each writer keys of its own.
        """
        ...

    async def replace(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        """Store the bytes whatever is there: for the repair of damaged objects only."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """The bytes in chunks of at most CHUNK_BYTES. Their digest is the caller's to check."""
        ...

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        """Fewer bytes where the object ends before, none past its end."""
        ...

    async def head(self, key: str) -> ObjectFacts | None: ...

    async def list_objects(
        self, prefix: str, *, after: str = "", limit: int = LIST_OBJECTS_MAX
    ) -> list[ObjectFacts]:
        """The next page, after the last key of the page before; empty at the end.

        The prefix is empty or ends with a slash.
        """
        ...

    async def delete(self, key: str) -> None: ...

    async def close(self) -> None: ...


def blocks_of(data: Sliceable) -> Iterator[Sliceable]:
    """Bytes at hand as they are passed on: in blocks of at most CHUNK_BYTES."""
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def is_key(text: str) -> bool:
    parts = text.split("/")
    return len(text) <= KEY_LENGTH_MAX and all(
        len(part) <= PART_LENGTH_MAX and _KEY_PART.fullmatch(part) for part in parts
    )


def check_key(key: str) -> None:
    if not is_key(key):
        raise ObjectKeyInvalid(key)


def check_prefix(prefix: str) -> None:
    if prefix and not (prefix.endswith("/") and is_key(prefix[:-1])):
        raise ObjectKeyInvalid(prefix)
