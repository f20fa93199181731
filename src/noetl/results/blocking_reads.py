"""The way to a result's bytes for whoever blocks: the same layers and places, the same proof.

Rows of a table are decoded where a template looks, and there nobody can wait for a fetch.
"""

from collections.abc import Sequence
from pathlib import Path

from noetl.kernel.errors import NoETLError, StoreUnavailable
from noetl.ports.result_cache import CachedBytes, CacheKey, Offering, ResultCache
from noetl.results.arrow_objects import open_arrow
from noetl.results.local_file import LocalFiles
from noetl.results.places import (
    LAYER_LOCAL,
    LAYER_STORE,
    TROUBLE,
    Place,
    Places,
    layer_of,
    most_telling,
)
from noetl.results.receiving import MEMORY_BYTES, Expected, Receiving

_BLOCK_BYTES = 4 * 1024 * 1024


class BlockingReads:
    def __init__(
        self,
        layers: Sequence[ResultCache],
        places: Places,
        local_files: LocalFiles,
        scratch: Path,
    ) -> None:
        self._layers = tuple(layers)
        self._places = places
        self._local_files = local_files
        self._scratch = scratch
        self.fallbacks = self.fetched_bytes = 0

    def read(self, key: CacheKey, object_key: str) -> CachedBytes:
        """Raises what `ReadChain.read` does."""
        for depth, layer in enumerate(self._layers):
            found = layer.get(key)
            if found is not None:
                if not found.borrowed:
                    self._offer(key, Offering(view=found.view, path=found.path), depth)
                return found
        self.fallbacks += 1
        problems: list[NoETLError] = []
        for place in self._places.in_order():
            try:
                return self._from_place(place, key, object_key)
            except TROUBLE as error:
                self._places.note(place, error)
                problems.append(error)
        raise most_telling(problems)

    def _from_place(self, place: Place, key: CacheKey, object_key: str) -> CachedBytes:
        local = place.objects.local_path(object_key)
        if local is not None:
            view = self._local_files.map(local, key, object_key)
            if view is not None:
                return CachedBytes(view, layer_of(place, LAYER_LOCAL), local)
        scratch = None if key.byte_length <= MEMORY_BYTES else self._scratch
        receiving = Receiving(Expected(key.sha256, key.byte_length), object_key, scratch)
        try:
            self._receive(place, object_key, receiving)
            view, path = receiving.finish()
            self._offer(key, Offering(view=view, path=path), len(self._layers))
        finally:
            receiving.discard()
        return CachedBytes(view, layer_of(place, LAYER_STORE))

    def _receive(self, place: Place, object_key: str, receiving: Receiving) -> None:
        with open_arrow(place.objects, object_key) as file:
            if file is None:
                raise StoreUnavailable(f"{object_key} cannot be read at {place.name} by blocking")
            while block := file.read(_BLOCK_BYTES):
                self.fetched_bytes += len(block)
                receiving.add(block)

    def _offer(self, key: CacheKey, offering: Offering, depth: int) -> None:
        for layer in reversed(self._layers[:depth]):
            layer.offer(key, offering)
