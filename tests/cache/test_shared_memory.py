"""Regions: how they are named, every reason for a miss, leases and grace."""

import os
from pathlib import Path

import pytest

from noetl.adapters.cache.region import HEADER
from noetl.adapters.cache.shared_memory import SharedMemoryResultCache
from noetl.kernel.instant import Instant
from noetl.ports.result_cache import Offering
from noetl.testing.compliance.result_cache import bytes_of
from tests.cache.held_clock import HeldClock
from tests.cache.shared_scene import DATA, KEY, SIZE, opened


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def cache(tmp_path: Path, clock: HeldClock) -> SharedMemoryResultCache:
    return opened(tmp_path, clock)


def only_region(folder: Path) -> Path:
    (region,) = folder.glob("noetl-home-*")
    return region


def shared(cache: SharedMemoryResultCache, lease_end: Instant | None = None) -> None:
    offering = Offering(
        view=memoryview(DATA),
        schema_digest="s" * 64,
        row_count=7,
        lease_expires_at=lease_end,
    )
    assert cache.offer(KEY, offering)


def reason_of_miss(cache: SharedMemoryResultCache) -> str:
    assert cache.get(KEY) is None
    (reason,) = cache.stats().misses
    return reason


def test_a_region_is_named_after_home_execution_and_frame(
    cache: SharedMemoryResultCache, tmp_path: Path, clock: HeldClock
) -> None:
    shared(cache, clock.later(60))

    assert only_region(tmp_path).name.startswith("noetl-home-42-0-")


def test_the_payload_lies_behind_the_header_as_it_is(
    cache: SharedMemoryResultCache, tmp_path: Path
) -> None:
    shared(cache)

    content = only_region(tmp_path).read_bytes()

    assert content[:8] == b"NOETLIPC"
    assert content[HEADER.size :] == DATA
    assert only_region(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("start", "replacement", "reason"),
    [
        (0, b"NOTNOETL", "magic"),
        (8, b"\7", "version"),
        (16, b"\1", "length"),
        (24, b"\0\0\0\0", "digest"),
        (56, b"\0\0\0\0", "scope"),
        (144, b"\0\0\0\0", "foreign_node"),
        (96, bytes(8), "expired"),
    ],
)
def test_a_header_that_says_something_else_is_a_miss(
    cache: SharedMemoryResultCache, tmp_path: Path, start: int, replacement: bytes, reason: str
) -> None:
    shared(cache)
    with only_region(tmp_path).open("r+b") as file:
        file.seek(start)
        file.write(replacement)

    assert reason_of_miss(cache) == reason


@pytest.mark.parametrize("size", [0, 11, HEADER.size - 1, HEADER.size, SIZE - 1, SIZE + 1])
def test_a_region_of_another_size_is_a_miss(
    cache: SharedMemoryResultCache, tmp_path: Path, size: int
) -> None:
    shared(cache)
    os.truncate(only_region(tmp_path), size)

    assert reason_of_miss(cache) == "length"


def test_what_is_damaged_is_replaced_by_the_next_offer(
    cache: SharedMemoryResultCache, tmp_path: Path
) -> None:
    shared(cache)
    os.truncate(only_region(tmp_path), 100)

    shared(cache)

    assert bytes_of(cache.get(KEY)) == DATA


def test_a_link_in_place_of_a_region_is_a_miss(
    cache: SharedMemoryResultCache, tmp_path: Path
) -> None:
    shared(cache)
    region = only_region(tmp_path)
    region.rename(tmp_path / "elsewhere")
    region.symlink_to(tmp_path / "elsewhere")

    assert reason_of_miss(cache) == "failed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_region_of_another_user_is_a_miss(cache: SharedMemoryResultCache, tmp_path: Path) -> None:
    shared(cache)
    os.chown(only_region(tmp_path), 12_345, -1)

    assert reason_of_miss(cache) == "failed"


def test_a_region_removed_under_a_reader_stays_readable(
    cache: SharedMemoryResultCache, tmp_path: Path
) -> None:
    shared(cache)
    found = cache.get(KEY)
    only_region(tmp_path).unlink()

    assert bytes_of(found) == DATA
    assert reason_of_miss(cache) == "absent"


def test_a_region_is_read_until_its_lease_and_the_grace_are_over(
    cache: SharedMemoryResultCache, tmp_path: Path, clock: HeldClock
) -> None:
    shared(cache, clock.later(60))
    clock.pass_seconds(89.9)
    assert cache.get(KEY) is not None
    assert cache.sweep() == 0

    clock.pass_seconds(0.1)

    assert reason_of_miss(cache) == "expired"
    assert cache.sweep() == 1
    assert list(tmp_path.glob("noetl-home-*")) == []


def test_offering_again_extends_the_lease(cache: SharedMemoryResultCache, clock: HeldClock) -> None:
    shared(cache, clock.later(60))
    shared(cache, clock.later(120))
    shared(cache, clock.later(90))
    clock.pass_seconds(149)

    assert cache.get(KEY) is not None
    assert cache.stats().entries == 1


def test_of_other_homes_a_sweep_takes_only_what_is_over(tmp_path: Path, clock: HeldClock) -> None:
    others = opened(tmp_path, clock, home_id="home-2")
    shared(others)

    assert opened(tmp_path, clock).sweep() == 0
    assert others.stats().entries == 1
    clock.pass_seconds(10_000)
    assert opened(tmp_path, clock).sweep() == 1
    assert others.stats().entries == 0


def test_the_last_region_takes_the_lock_along(
    cache: SharedMemoryResultCache, tmp_path: Path, clock: HeldClock
) -> None:
    others = opened(tmp_path, clock, home_id="gone")
    shared(others)
    shared(cache)
    assert cache.sweep() == 0
    assert len(list(tmp_path.glob("*.lock"))) == 2

    clock.pass_seconds(10_000)

    assert cache.sweep() == 2
    assert list(tmp_path.iterdir()) == []
    shared(cache)
    assert bytes_of(cache.get(KEY)) == DATA


def test_what_another_home_has_in_another_form_is_left_alone(
    tmp_path: Path, clock: HeldClock
) -> None:
    stranger = tmp_path / "noetl-other-1-0-stranger"
    stranger.write_bytes(b"NOETLIPC\2\0\0\0")
    clock.pass_seconds(10_000)
    assert opened(tmp_path, clock).sweep() == 0
    assert stranger.exists()


def test_what_a_sweep_cannot_make_out_goes_after_the_grace(
    cache: SharedMemoryResultCache, tmp_path: Path, clock: HeldClock
) -> None:
    stranger = tmp_path / "noetl-home-1-0-stranger"
    stranger.write_bytes(b"NOETLIPC\2\0\0\0")
    written_ns = 1_767_225_600_000 * 1_000_000
    os.utime(stranger, ns=(written_ns, written_ns))

    assert cache.sweep() == 0
    clock.pass_seconds(31)
    assert cache.sweep() == 1


def test_a_folder_of_such_a_name_stops_no_sweep(
    cache: SharedMemoryResultCache, tmp_path: Path, clock: HeldClock
) -> None:
    shared(cache)
    for name in ("noetl-home-1-0-folder", "noetl-tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()

    clock.pass_seconds(10_000)

    assert cache.sweep() == 1
    assert cache.stats().entries == 0
