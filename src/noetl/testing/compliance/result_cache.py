"""The ResultCache's promises as tests. A layer passes by subclassing and giving fixtures."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from noetl.kernel.instant import Instant
from noetl.ports.result_cache import CachedBytes, CacheKey, Offering, ResultCache
from noetl.testing.byte_streams import sample

LEASE_END = Instant("2100-01-01T00:00:00.000000Z")
SIZES = (0, 1, 63, 4_096, 1_000_003)
BUDGET_BYTES = 10_000_000
ENTRY_BYTES = 10_000
WRITERS = 8

Opener = Callable[[int], ResultCache]
"""The layer with this budget, at the same place each time where it has a place."""

Breaker = Callable[[], None]
"""Make the layer's place useless, behind its back."""


def key_of(data: bytes, tenant: str = "acme", execution: str = "42") -> CacheKey:
    return CacheKey(
        tenant_id=tenant,
        organization_id="research",
        execution_id=execution,
        sha256=hashlib.sha256(data).hexdigest(),
        byte_length=len(data),
    )


def offered(data: bytes, lease_end: Instant | None = None) -> Offering:
    return Offering(view=memoryview(data), lease_expires_at=lease_end)


def bytes_of(found: CachedBytes | None) -> bytes | None:
    return None if found is None else bytes(found.view)


class ResultCacheCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def open_cache(self) -> Opener: ...

    @pytest.fixture
    @abstractmethod
    def break_place(self) -> Breaker: ...

    @pytest.mark.parametrize("size", SIZES)
    def test_c1_what_was_admitted_is_what_is_got(self, open_cache: Opener, size: int) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(size)
        assert cache.get(key_of(data)) is None

        assert cache.offer(key_of(data), offered(data))

        found = cache.get(key_of(data))
        assert bytes_of(found) == data
        assert found is not None
        assert found.path is None or found.path.read_bytes() == data

    def test_c1_a_file_that_is_kept_has_exactly_the_bytes(self, open_cache: Opener) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(4_096)
        assert cache.file_of(key_of(data)) is None
        assert cache.offer(key_of(data), offered(data))

        before = cache.stats().reads
        path = cache.file_of(key_of(data))

        assert path is None or path.read_bytes() == data
        assert cache.stats().reads == before

    def test_c1_nobody_can_write_to_what_is_handed_out(self, open_cache: Opener) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)
        assert cache.offer(key_of(data), Offering(view=memoryview(bytearray(data))))

        found = cache.get(key_of(data))

        assert found is not None
        assert found.view.readonly

    @pytest.mark.parametrize(
        "change",
        [{"tenant_id": "acme2"}, {"organization_id": "acme"}, {"execution_id": "4"}],
    )
    def test_c2_equal_bytes_of_another_are_a_miss(
        self, open_cache: Opener, change: dict[str, str]
    ) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)
        assert cache.offer(key_of(data), offered(data))

        assert cache.get(msgspec.structs.replace(key_of(data), **change)) is None

    def test_c2_names_that_run_together_stay_apart(self, open_cache: Opener) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)
        key = msgspec.structs.replace(key_of(data), tenant_id="a", organization_id="b/c")
        assert cache.offer(key, offered(data))

        for pair in (("a/b", "c"), ("a/", "b/c"), ("ab", "/c"), ("A", "b/c")):
            other = msgspec.structs.replace(key, tenant_id=pair[0], organization_id=pair[1])
            assert cache.get(other) is None

    @pytest.mark.parametrize("name", ["..", "../..", "a/b", "", "ü", "\0", "x" * 5_000, "-"])
    def test_c2_strange_names_do_no_harm(self, open_cache: Opener, name: str) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)
        key = msgspec.structs.replace(
            key_of(data), tenant_id=name, organization_id=name, execution_id=name, frame=name
        )

        assert cache.offer(key, offered(data))

        assert bytes_of(cache.get(key)) == data
        assert cache.get(key_of(data)) is None

    def test_c3_a_place_that_is_gone_is_a_miss(
        self, open_cache: Opener, break_place: Breaker
    ) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)
        break_place()

        admitted = cache.offer(key_of(data), offered(data))

        assert bytes_of(cache.get(key_of(data))) == (data if admitted else None)
        assert cache.stats().reads == cache.stats().offers == 1

    def test_c3_what_is_not_a_digest_leads_nowhere(self, open_cache: Opener) -> None:
        cache = open_cache(BUDGET_BYTES)
        for digest in ("", "..", "../../x", "A" * 64, "0" * 63):
            key = msgspec.structs.replace(key_of(b"x"), sha256=digest)
            assert cache.get(key) is None

    def test_c4_bytes_in_use_stay_within_the_budget(self, open_cache: Opener) -> None:
        cache = open_cache(10 * ENTRY_BYTES)
        entries = [bytes([number]) * ENTRY_BYTES for number in range(40)]

        for data in entries:
            cache.get(key_of(data))
            cache.get(key_of(data))
            cache.offer(key_of(data), offered(data))
            assert cache.stats().bytes_in_use <= 10 * ENTRY_BYTES

        assert cache.stats().bytes_in_use >= 8 * ENTRY_BYTES
        held = [data for data in entries if cache.get(key_of(data)) is not None]
        assert len(held) == cache.stats().entries

    def test_c4_many_writers_stay_within_the_budget(self, open_cache: Opener) -> None:
        budget = 10 * ENTRY_BYTES
        caches = [open_cache(budget) for _ in range(WRITERS)]

        def write(number: int) -> int:
            cache = caches[number]
            most = 0
            for turn in range(20):
                data = f"{number}/{turn}".encode().ljust(ENTRY_BYTES)
                cache.offer(key_of(data), offered(data))
                most = max(most, cache.stats().bytes_in_use)
            return most

        with ThreadPoolExecutor(WRITERS) as threads:
            assert max(threads.map(write, range(WRITERS))) <= budget

    def test_c4_no_budget_admits_nothing(self, open_cache: Opener) -> None:
        cache = open_cache(0)

        for data in (b"", sample(100)):
            assert not cache.offer(key_of(data), offered(data, LEASE_END))
            assert cache.get(key_of(data)) is None

        assert cache.stats().bytes_in_use == 0

    def test_c4_what_is_larger_than_the_budget_is_refused(self, open_cache: Opener) -> None:
        cache = open_cache(ENTRY_BYTES)
        small, large = sample(100), sample(ENTRY_BYTES + 1)
        assert cache.offer(key_of(small), offered(small))

        assert not cache.offer(key_of(large), offered(large, LEASE_END))

        assert bytes_of(cache.get(key_of(small))) == small

    def test_c5_bytes_outlive_their_entry(self, open_cache: Opener) -> None:
        cache = open_cache(3 * ENTRY_BYTES)
        first = sample(ENTRY_BYTES)
        assert cache.offer(key_of(first), offered(first))
        found = cache.get(key_of(first))

        for number in range(20):
            data = bytes([number]) * ENTRY_BYTES
            cache.offer(key_of(data), offered(data, LEASE_END))

        assert cache.get(key_of(first)) is None
        assert bytes_of(found) == first

    def test_c6_offering_again_leaves_one_entry(self, open_cache: Opener) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(ENTRY_BYTES)

        with ThreadPoolExecutor(WRITERS) as threads:
            offers = threads.map(
                lambda _: cache.offer(key_of(data), offered(data)), range(3 * WRITERS)
            )
            assert all(offers)

        assert cache.stats().entries == 1
        assert bytes_of(cache.get(key_of(data))) == data

    def test_c7_bytes_of_another_length_are_refused(self, open_cache: Opener) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)

        for wrong in (data[:-1], data + b"x", b""):
            assert not cache.offer(key_of(data), offered(wrong))

        assert cache.get(key_of(data)) is None

    def test_c8_everything_counts_once(self, open_cache: Opener) -> None:
        cache, data = open_cache(BUDGET_BYTES), sample(100)

        cache.get(key_of(data))
        cache.offer(key_of(data), offered(b"wrong"))
        cache.offer(key_of(data), offered(data))
        cache.get(key_of(data))
        cache.get(key_of(data))

        stats = cache.stats()
        assert (stats.hits, stats.misses) == (2, {"absent": 1})
        assert (stats.admissions, stats.refusals) == (1, {"length": 1})
        assert (stats.reads, stats.offers, stats.hit_ratio) == (3, 2, 2 / 3)
