"""Process memory keeps the promises of a layer; nothing can break it from outside."""

import pytest

from noetl.adapters.cache.memory import MemoryResultCache
from noetl.testing.compliance.result_cache import (
    Breaker,
    Opener,
    ResultCacheCompliance,
    key_of,
    offered,
)


class TestMemoryResultCache(ResultCacheCompliance):
    @pytest.fixture
    def open_cache(self) -> Opener:
        return MemoryResultCache

    @pytest.fixture
    def break_place(self) -> Breaker:
        return lambda: None

    def test_the_least_recently_used_goes_first(self) -> None:
        cache = MemoryResultCache(3)
        for data in (b"a", b"b", b"c"):
            cache.offer(key_of(data), offered(data))
        cache.get(key_of(b"a"))

        cache.offer(key_of(b"d"), offered(b"d"))

        held = [data for data in (b"a", b"b", b"c", b"d") if cache.get(key_of(data))]
        assert held == [b"a", b"c", b"d"]
        assert cache.stats().evictions == 1
