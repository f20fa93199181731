"""Payloads as data: fetched when a template or a tool has to see them, kept while there is room."""

import asyncio
from collections import OrderedDict
from typing import Any, Final

import msgspec

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.payload import PayloadReference, payload_uri
from noetl.kernel import canonical_json
from noetl.kernel.errors import PayloadMissing
from noetl.kernel.scope import Scope
from noetl.pipeline.failures import failed
from noetl.ports.payload_store import PayloadStore
from noetl.templates.recorded import content_of, inline_result, referred_result

INLINE_BYTES_MAX = 102_400
KEPT_BYTES_MAX = 64 * 1024 * 1024
MEDIA_TYPE: Final = "application/json"


class Contents:
    """The decoded contents of payloads, least recently used ones dropped first."""

    def __init__(self, store: PayloadStore, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self._kept_bytes = 0
        self._kept_bytes_max = kept_bytes_max
        self._fetching: dict[str, asyncio.Lock] = {}

    async def get(self, scope: Scope, uri: str) -> Any:
        """Rows that ask for it at once fetch it once. Raises PayloadError, ToolFailed."""
        reference = _payload(scope, uri)
        if uri in self._kept:
            self._kept.move_to_end(uri)
            return self._kept[uri][1]
        lock = self._fetching.setdefault(uri, asyncio.Lock())
        async with lock:
            try:
                if uri in self._kept:
                    return self._kept[uri][1]
                encoded = b"".join([chunk async for chunk in self._store.get(reference)])
            finally:
                self._fetching.pop(uri, None)
            content = _decoded(uri, encoded)
            self._keep(uri, len(encoded), content)
        return content

    async def record(self, scope: Scope, value: Any, status: str = "ok") -> Result:
        """The value as a call carries it: a large one is stored first, and referred to."""
        content = content_of(value)
        encoded = canonical_json.encode(content)
        if len(encoded) <= INLINE_BYTES_MAX:
            return inline_result(value, status)
        stored = await self._store.put(scope, encoded, MEDIA_TYPE)
        reference = ResultReference(
            type="object_store",
            uri=stored.uri,
            sha256=stored.sha256,
            media_type=stored.media_type,
            byte_length=stored.byte_length,
        )
        return referred_result(content, reference, status)

    def _keep(self, uri: str, byte_length: int, content: Any) -> None:
        if uri in self._kept or byte_length > self._kept_bytes_max:
            return
        self._kept[uri] = (byte_length, content)
        self._kept_bytes += byte_length
        while self._kept_bytes > self._kept_bytes_max:
            _, (freed, _content) = self._kept.popitem(last=False)
            self._kept_bytes -= freed


def _decoded(uri: str, encoded: bytes) -> Any:
    try:
        return msgspec.json.decode(encoded)
    except msgspec.DecodeError as error:
        message = f"{uri} is not JSON, so templates cannot look into it; pass it to a tool"
        raise failed("missing_reference", message) from error


def _payload(scope: Scope, uri: str) -> PayloadReference:
    """Another tenant's payload is not there for this one, even when its bytes are the same."""
    sha256 = uri.rpartition("/")[2]
    if uri != payload_uri(scope, sha256):
        raise PayloadMissing(uri)
    return PayloadReference(
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        uri=uri,
        sha256=sha256,
        media_type=MEDIA_TYPE,
        byte_length=0,
    )
