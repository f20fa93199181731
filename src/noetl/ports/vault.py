"""Locking bytes with a key, so that whoever stores them cannot read them."""

from typing import Protocol


class Vault(Protocol):
    """Bytes are locked for a context: where they belong. Elsewhere they do not open."""

    @property
    def key_id(self) -> str:
        """Names the key and tells nothing about it; stored beside what the key has locked."""
        ...

    def lock(self, plain: bytes, context: bytes) -> bytes:
        """Two calls never give the same bytes."""
        ...

    def unlock(self, locked: bytes, context: bytes) -> bytes | None:
        """None for another key, another context, or bytes that are not as they were locked."""
        ...
