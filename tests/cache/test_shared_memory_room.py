"""The budget of shared memory: who makes room for whom, and what a full memory does."""

import errno
import os
from pathlib import Path

import pytest

from noetl.adapters.cache.shared_memory import SharedMemoryResultCache
from noetl.results.cache_metrics import ipc_counters, ipc_gauges
from noetl.testing.compliance.result_cache import key_of, offered
from tests.cache.held_clock import HeldClock
from tests.cache.shared_scene import DATA, KEY, SIZE, numbered, opened


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def cache(tmp_path: Path, clock: HeldClock) -> SharedMemoryResultCache:
    return opened(tmp_path, clock)


def test_what_holds_a_lease_is_not_evicted(tmp_path: Path, clock: HeldClock) -> None:
    cache = opened(tmp_path, clock, budget_bytes=2 * SIZE)
    for number in (1, 2):
        key, data = numbered(number)
        assert cache.offer(key, offered(data, clock.later(60)))

    key, data = numbered(3)
    assert not cache.offer(key, offered(data, clock.later(60)))

    assert cache.stats().refusals == {"budget": 1}
    assert [cache.get(numbered(number)[0]) is not None for number in (1, 2, 3)] == [1, 1, 0]


def test_past_their_lease_the_least_recently_used_make_room(
    tmp_path: Path, clock: HeldClock
) -> None:
    cache = opened(tmp_path, clock, budget_bytes=3 * SIZE)
    for number in (1, 2, 3):
        key, data = numbered(number)
        assert cache.offer(key, offered(data, clock.later(10)))
        clock.pass_seconds(1)
    clock.pass_seconds(10)
    assert cache.get(numbered(1)[0]) is not None

    key, data = numbered(4)
    assert cache.offer(key, offered(data, clock.later(10)))

    held = [number for number in (1, 2, 3, 4) if cache.get(numbered(number)[0]) is not None]
    assert held == [1, 3, 4]
    assert cache.stats().evictions == 1


def test_nothing_goes_when_room_cannot_be_made(tmp_path: Path, clock: HeldClock) -> None:
    cache = opened(tmp_path, clock, budget_bytes=3 * SIZE)
    for number, seconds in ((1, 0), (2, 60), (3, 60)):
        key, data = numbered(number)
        assert cache.offer(key, offered(data, clock.later(seconds)))

    large = bytes(2 * len(DATA))
    assert not cache.offer(key_of(large), offered(large, clock.later(60)))

    assert cache.stats().entries == 3


def test_a_scan_evicts_nothing(tmp_path: Path, clock: HeldClock) -> None:
    cache = opened(tmp_path, clock, budget_bytes=2 * SIZE)
    for number in range(50):
        clock.pass_seconds(1)
        key, data = numbered(number)
        if cache.get(key) is None:
            cache.offer(key, offered(data))

    held = [number for number in range(50) if cache.get(numbered(number)[0]) is not None]
    assert held == [0, 1]
    assert cache.stats().refusals == {"full": 48}


def test_what_is_missed_twice_takes_the_place_of_what_is_idle(
    tmp_path: Path, clock: HeldClock
) -> None:
    cache = opened(tmp_path, clock, budget_bytes=2 * SIZE)
    for number in (1, 2, 3, 3):
        clock.pass_seconds(1)
        key, data = numbered(number)
        if cache.get(key) is None:
            cache.offer(key, offered(data))

    assert [cache.get(numbered(number)[0]) is not None for number in (1, 2, 3)] == [0, 1, 1]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOMEM, errno.EDQUOT])
def test_a_full_memory_is_a_refusal_and_leaves_nothing(
    cache: SharedMemoryResultCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def full(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", full)

    assert not cache.offer(KEY, offered(DATA))

    assert cache.stats().refusals == {"no_space": 1}
    assert list(tmp_path.glob("noetl-home-*")) == []


def test_numbers_have_the_names_that_alarms_know(tmp_path: Path, clock: HeldClock) -> None:
    cache = opened(tmp_path, clock, budget_bytes=SIZE)
    for number in (1, 2):
        key, data = numbered(number)
        cache.get(key)
        cache.offer(key, offered(data, clock.later(60)))
    cache.get(numbered(1)[0])

    assert ipc_counters(cache.stats(), durable_fallbacks=2) == {
        "noetl_storage_ipc_admission_attempts_total": 2,
        "noetl_storage_ipc_admission_success_total": 1,
        "noetl_storage_ipc_admission_failures_total": 1,
        "noetl_storage_ipc_read_attempts_total": 3,
        "noetl_storage_ipc_read_hits_total": 1,
        "noetl_storage_ipc_read_misses_total": 2,
        "noetl_storage_ipc_evictions_total": 0,
        "noetl_storage_ipc_durable_fallbacks_total": 2,
        "tier15_budget_exhaustion_total": 1,
    }
    assert ipc_gauges(cache.stats()) == {
        "noetl_storage_ipc_read_hit_ratio": 1 / 3,
        "tier15_bytes_in_use": SIZE,
    }
