"""Proof of bytes: what is read, kept or sent on has the digest that its reference names."""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

from noetl.domain.payload import Fingerprint

_HASH_BYTES = 16 * 1024 * 1024


class Readable(Protocol):
    def read(self, key: str) -> AsyncIterator[bytes]: ...


async def fingerprint_of(objects: Readable, key: str) -> Fingerprint:
    """Of all bytes of an object, a chunk at a time. Raises what `read` does."""
    fingerprint = Fingerprint()
    async for chunk in objects.read(key):
        await asyncio.to_thread(fingerprint.add, chunk)
    return fingerprint


async def proven(
    chunks: AsyncIterable[bytes], uri: str, sha256: str | None
) -> AsyncIterator[bytes]:
    """The last chunk is held back until all are known to be right: a store that is not given the
    end keeps nothing. Raises PayloadCorrupt."""
    fingerprint, held = Fingerprint(), b""
    async for chunk in chunks:
        if held:
            yield held
        held = chunk
        await asyncio.to_thread(fingerprint.add, held)
    fingerprint.check(uri, sha256)
    if held:
        yield held


def sha256_of(view: memoryview) -> str:
    """Blocks, and reads a mapped file all through."""
    digest = hashlib.sha256()
    for start in range(0, view.nbytes, _HASH_BYTES):
        digest.update(view[start : start + _HASH_BYTES])
    return digest.hexdigest()
