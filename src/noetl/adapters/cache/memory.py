"""ResultCache in this process: views of mapped or fetched bytes, the least recently used go first.

A mapped view costs address space and page cache rather than memory of its own; it counts in full.
"""

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from noetl.adapters.cache.tally import Tally
from noetl.ports.result_cache import CachedBytes, CacheKey, CacheStats, Offering

LAYER = "memory"
BUDGET_BYTES = 512 * 1024 * 1024


class MemoryResultCache:
    in_process = True

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._entries: OrderedDict[CacheKey, CachedBytes] = OrderedDict()
        self._bytes_in_use = 0
        self._lock = Lock()
        self._tally = Tally(LAYER, budget_bytes)

    def get(self, key: CacheKey, /) -> CachedBytes | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
        if found is None:
            self._tally.missed("absent")
        else:
            self._tally.hit()
        return found

    def offer(self, key: CacheKey, offering: Offering, /) -> bool:
        if offering.view.nbytes != key.byte_length:
            self._tally.refused("length")
            return False
        if key.byte_length > self._budget_bytes or not self._budget_bytes:
            self._tally.refused("budget")
            return False
        with self._lock:
            if key not in self._entries:
                view = offering.view.toreadonly()
                self._entries[key] = CachedBytes(view, LAYER, offering.path)
                self._bytes_in_use += key.byte_length
            self._entries.move_to_end(key)
            self._make_room()
        self._tally.admitted()
        return True

    def file_of(self, _key: CacheKey, /) -> Path | None:
        return None  # files that it was told of are others'

    def stats(self) -> CacheStats:
        with self._lock:
            used, entries = self._bytes_in_use, len(self._entries)
        return self._tally.stats(bytes_in_use=used, entries=entries)

    def _make_room(self) -> None:
        """The newest entry fits by itself, so this ends before it."""
        while self._bytes_in_use > self._budget_bytes:
            oldest, _ = self._entries.popitem(last=False)
            self._bytes_in_use -= oldest.byte_length
            self._tally.evicted(1)
