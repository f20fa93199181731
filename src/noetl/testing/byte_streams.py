"""Bytes to store and streams to read them from, good ones and bad ones."""

import hashlib
from collections.abc import AsyncIterator

from noetl.ports.object_store import CHUNK_BYTES


def sample(size: int) -> bytes:
    """Bytes that differ from place to place, so a lost or doubled piece changes them."""
    pattern = hashlib.sha512(str(size).encode()).digest() * 1024
    numbered = (index.to_bytes(8) + pattern for index in range(size // len(pattern) + 1))
    return b"".join(numbered)[:size]


async def pieces(data: bytes, size: int = 100_003) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
        yield b""


async def broken(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise ConnectionResetError("the source went away")


async def numbered_blocks(total_bytes: int) -> AsyncIterator[bytes]:
    rest = b"x" * (CHUNK_BYTES - 8)
    for number in range(total_bytes // CHUNK_BYTES):
        yield number.to_bytes(8) + rest


async def collect(chunks: AsyncIterator[bytes], received: bytearray) -> bytes:
    async for chunk in chunks:
        received += chunk
    return bytes(received)
