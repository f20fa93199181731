"""Other copies of lost bytes: in the caches of this node, and where objects are replicated to."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple, Protocol

from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import is_payload_uri
from noetl.ports.result_cache import CachedBytes, CacheKey, ResultCache
from noetl.results.proof import Readable, sha256_of
from noetl.results.writer import cache_key
from noetl.runtime.results_repair_objects import Data, Named


class Found(NamedTuple):
    """Bytes that claim to be the lost ones, or why there are none."""

    source: str
    data: Data | None = None
    reason: str | None = None


class Source(Protocol):
    """Where bytes may come from. What it gives is proven before it is written."""

    def __call__(self, named: Named, /) -> AsyncGenerator[Found]: ...


class Replica(NamedTuple):
    name: str
    objects: Readable


class CachedCopies:
    """Layers of this node. A layer may lie: its bytes are hashed before they are offered."""

    def __init__(self, layers: Sequence[ResultCache]) -> None:
        self._layers = layers

    async def __call__(self, named: Named, /) -> AsyncGenerator[Found]:
        key = cache_key_of(named)
        if key is None:
            return
        for layer in self._layers:
            found = await asyncio.to_thread(self._checked, layer, key)
            if found is not None:
                yield Found(f"cache:{found.layer}", found.view)

    def _checked(self, layer: ResultCache, key: CacheKey) -> CachedBytes | None:
        found = layer.get(key)
        if found is None:
            return None
        return found if sha256_of(found.view) == key.sha256 else None


class ReplicatedCopies:
    """`places` says which replicas there are now, the nearest first."""

    def __init__(self, places: Callable[[], Sequence[Replica]]) -> None:
        self._places = places

    async def __call__(self, named: Named, /) -> AsyncGenerator[Found]:
        if named.key is None:
            return
        for replica in self._places():
            yield Found(f"replica:{replica.name}", replica.objects.read(named.key))


def cache_key_of(named: Named) -> CacheKey | None:
    """As readers and writers of results ask their caches; payloads have none."""
    reference = named.reference
    if is_payload_uri(reference.uri) or not reference.sha256 or reference.byte_length is None:
        return None
    return cache_key(parse_results(reference.uri), reference)
