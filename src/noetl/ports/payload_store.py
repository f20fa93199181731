"""Immutable bytes by content hash, kept apart by tenant."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

from noetl.domain.payload import PayloadReference, StoredPayload
from noetl.kernel.scope import Scope

LIST_PAYLOADS_MAX = 1_000


class PayloadStore(Protocol):
    """Promises kept over every object store (each has a test of the same number):

    B1  what is put is what is got, and its reference names the sha256 of exactly those bytes
    B2  equal bytes in one scope are one object with one uri; another scope has its own,
        whatever the names of tenants and organizations look like
    B3  an object never changes: putting again, also by many at once, leaves it as it is
    B4  memory stays bounded both ways, however large the payload
    B5  a put that fails or dies half way leaves nothing that can be got or listed
    B6  getting what is not there is PayloadMissing; getting damaged bytes is PayloadCorrupt,
        and then the last chunk is withheld
    B7  `list_stored` names every object of a scope exactly once, in order, page by page
    B8  deleting removes that object only, and deleting again is not an error
    """

    async def put(
        self, scope: Scope, data: bytes | AsyncIterable[bytes], media_type: str
    ) -> PayloadReference:
        """Store the bytes; the media type belongs to the reference, not to the object.

        An error that `data` raises comes out as it is.
        """
        ...

    def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        """The bytes in chunks; the digest is checked before the last chunk is handed out."""
        ...

    async def exists(self, reference: PayloadReference) -> bool: ...

    async def delete(self, reference: PayloadReference) -> None: ...

    async def list_stored(
        self, scope: Scope, *, after_sha256: str = "", limit: int = LIST_PAYLOADS_MAX
    ) -> list[StoredPayload]:
        """The next page in order of digests, after that of the page before; empty at the end."""
        ...

    async def close(self) -> None: ...
