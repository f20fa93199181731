"""What a layer counts, from any thread."""

from collections import Counter
from threading import Lock

from noetl.ports.result_cache import CacheStats


class Tally:
    def __init__(self, layer: str, budget_bytes: int) -> None:
        self._layer = layer
        self._budget_bytes = budget_bytes
        self._lock = Lock()
        self._hits = 0
        self._admissions = 0
        self._evictions = 0
        self._misses: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()

    def hit(self) -> None:
        with self._lock:
            self._hits += 1

    def missed(self, reason: str) -> None:
        with self._lock:
            self._misses[reason] += 1

    def admitted(self) -> None:
        with self._lock:
            self._admissions += 1

    def refused(self, reason: str) -> None:
        with self._lock:
            self._refusals[reason] += 1

    def evicted(self, count: int) -> None:
        with self._lock:
            self._evictions += count

    def stats(self, *, bytes_in_use: int, entries: int) -> CacheStats:
        with self._lock:
            return CacheStats(
                layer=self._layer,
                budget_bytes=self._budget_bytes,
                bytes_in_use=bytes_in_use,
                entries=entries,
                hits=self._hits,
                misses=dict(self._misses),
                admissions=self._admissions,
                refusals=dict(self._refusals),
                evictions=self._evictions,
            )
