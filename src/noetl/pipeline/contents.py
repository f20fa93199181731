"""Stored results as data: fetched when a template or a tool has to see them, kept while there
is room."""

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.kernel.scope import Scope
from noetl.pipeline.failures import failed
from noetl.results.lazily import is_large_table
from noetl.results.store import ResultStore

KEPT_BYTES_MAX = 64 * 1024 * 1024
UNKNOWN_BYTES = 1024 * 1024
"""What a content counts for whose reference nobody has."""

MAPPED_BYTES = 16 * 1024 * 1024
"""What a large table counts for: it takes no memory, but its file may be there for us alone."""


class Contents:
    """The decoded contents of results, least recently used ones dropped first."""

    def __init__(self, store: ResultStore, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self.store = store
        self._kept: OrderedDict[tuple[Scope, str], tuple[int, Any]] = OrderedDict()
        self._kept_bytes = 0
        self._kept_bytes_max = kept_bytes_max
        self._fetching: dict[tuple[Scope, str], asyncio.Lock] = {}

    async def get(self, scope: Scope, uri: str, known: ResultReference | None = None) -> Any:
        """Rows that ask for it at once fetch it once. Raises PayloadError, ToolFailed."""
        key = (scope, uri)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        lock = self._fetching.setdefault(key, asyncio.Lock())
        async with lock:
            try:
                if key in self._kept:
                    return self._kept[key][1]
                content = await self._content(scope, uri, known)
            finally:
                self._fetching.pop(key, None)
            self._keep(key, _weight(known), content)
        return content

    async def _content(self, scope: Scope, uri: str, known: ResultReference | None) -> Any:
        try:
            return await self.store.content(scope, uri, known, lazily=True)
        except msgspec.DecodeError as error:
            message = f"{uri} is not JSON, so templates cannot look into it; pass it to a tool"
            raise failed("missing_reference", message) from error

    def _keep(self, key: tuple[Scope, str], byte_length: int, content: Any) -> None:
        if key in self._kept or byte_length > self._kept_bytes_max:
            return
        self._kept[key] = (byte_length, content)
        self._kept_bytes += byte_length
        while self._kept_bytes > self._kept_bytes_max:
            _, (freed, _content) = self._kept.popitem(last=False)
            self._kept_bytes -= freed


def _weight(known: ResultReference | None) -> int:
    if is_large_table(known):
        return MAPPED_BYTES
    length = None if known is None else known.byte_length
    return UNKNOWN_BYTES if length is None else length
