"""PayloadStore in a dict. It cannot keep B4: holding the bytes is what it does."""

from collections.abc import AsyncIterable, AsyncIterator

from noetl.domain.payload import (
    Fingerprint,
    PayloadReference,
    StoredPayload,
    payload_key,
    payload_prefix,
    reference_to,
)
from noetl.kernel.errors import PayloadMissing
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import CHUNK_BYTES, LIST_PAYLOADS_MAX


class MemoryPayloadStore:
    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def put(
        self, scope: Scope, data: bytes | AsyncIterable[bytes], media_type: str
    ) -> PayloadReference:
        whole = data if isinstance(data, bytes) else b"".join([chunk async for chunk in data])
        stored = Fingerprint(whole).stored()
        self._objects.setdefault(payload_key(scope, stored.sha256), whole)
        return reference_to(scope, stored, media_type)

    async def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        whole = self._objects.get(_key(reference))
        if whole is None:
            raise PayloadMissing(reference.uri)
        Fingerprint(whole).check(reference)
        for start in range(0, len(whole), CHUNK_BYTES):
            yield whole[start : start + CHUNK_BYTES]

    async def exists(self, reference: PayloadReference) -> bool:
        return _key(reference) in self._objects

    async def delete(self, reference: PayloadReference) -> None:
        self._objects.pop(_key(reference), None)

    async def list_stored(
        self, scope: Scope, *, after_sha256: str = "", limit: int = LIST_PAYLOADS_MAX
    ) -> list[StoredPayload]:
        prefix = payload_prefix(scope)
        found = [
            StoredPayload(key.rpartition("/")[2], len(whole))
            for key, whole in self._objects.items()
            if key.startswith(prefix)
        ]
        later = sorted(
            (stored for stored in found if stored.sha256 > after_sha256),
            key=lambda stored: stored.sha256,
        )
        return later[: min(limit, LIST_PAYLOADS_MAX)]

    async def close(self) -> None:
        """Nothing to give back."""


def _key(reference: PayloadReference) -> str:
    return payload_key(reference.scope, reference.sha256)
