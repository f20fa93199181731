"""Payloads as data: fetched when a template or a tool has to see them, kept while there is room."""

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from noetl.domain.events.values import Result
from noetl.kernel.scope import Scope
from noetl.pipeline.failures import failed
from noetl.pipeline.payloads import read_bytes, recorded
from noetl.ports.payload_store import PayloadStore

KEPT_BYTES_MAX = 64 * 1024 * 1024


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
        if uri in self._kept:
            self._kept.move_to_end(uri)
            return self._kept[uri][1]
        lock = self._fetching.setdefault(uri, asyncio.Lock())
        async with lock:
            try:
                if uri in self._kept:
                    return self._kept[uri][1]
                encoded = await read_bytes(self._store, scope, uri)
            finally:
                self._fetching.pop(uri, None)
            content = _decoded(uri, encoded)
            self._keep(uri, len(encoded), content)
        return content

    async def record(self, scope: Scope, value: Any, status: str = "ok") -> Result:
        """The value as a call carries it: a large one is stored first, and referred to."""
        return await recorded(value, self._store, scope, status=status)

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
