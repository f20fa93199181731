"""The disk cache: what stays over restarts, what goes first, and what a power cut may leave."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.adapters.cache.disk import DiskResultCache
from noetl.ports.result_cache import Offering
from noetl.testing.compliance.result_cache import bytes_of, key_of, offered
from tests.cache.held_clock import HeldClock

DATA = bytes(range(256)) * 40
KEY = key_of(DATA)

STALLED_WRITER = """
import sys
from pathlib import Path
from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.system.clock import utc_now
from noetl.testing.compliance.result_cache import key_of, offered

class Stalled(DiskResultCache):
    def _named(self, *_):
        print("written", flush=True)
        sys.stdin.read()

data = bytes(10_000)
Stalled(Path(sys.argv[1]), utc_now).offer(key_of(data), offered(data))
"""


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


def opened(root: Path, clock: HeldClock, budget: int = 10**9, boot: str = "b1") -> DiskResultCache:
    return DiskResultCache(root, clock, budget, boot=boot)


def files(root: Path) -> list[Path]:
    return [path for path in root.glob("*/??/*") if path.is_file()]


def test_entries_stay_when_the_process_ends(tmp_path: Path, clock: HeldClock) -> None:
    assert opened(tmp_path, clock).offer(KEY, offered(DATA))

    found = opened(tmp_path, clock).get(KEY)

    assert bytes_of(found) == DATA
    assert found is not None
    assert found.path is not None
    assert found.path.read_bytes() == DATA


def test_what_an_earlier_boot_wrote_is_used_when_it_is_right(
    tmp_path: Path, clock: HeldClock
) -> None:
    opened(tmp_path, clock, boot="b1").offer(KEY, offered(DATA))

    later = opened(tmp_path, clock, boot="b2")
    assert bytes_of(later.get(KEY)) == DATA
    later.sweep()

    assert [path.parent.parent.name for path in files(tmp_path)] == ["b2"]
    assert not (tmp_path / "b1").exists()


def test_what_a_power_cut_damaged_is_a_miss_and_goes(tmp_path: Path, clock: HeldClock) -> None:
    opened(tmp_path, clock, boot="b1").offer(KEY, offered(DATA))
    (file,) = files(tmp_path)
    file.write_bytes(bytes(len(DATA)))  # the length arrived, the blocks did not

    assert opened(tmp_path, clock, boot="b2").get(KEY) is None
    assert files(tmp_path) == []


@pytest.mark.parametrize("size", [0, len(DATA) - 1, len(DATA) + 1])
def test_a_file_of_another_length_is_a_miss_and_goes(
    tmp_path: Path, clock: HeldClock, size: int
) -> None:
    cache = opened(tmp_path, clock)
    cache.offer(KEY, offered(DATA))
    os.truncate(files(tmp_path)[0], size)

    assert cache.get(KEY) is None
    assert cache.stats().misses == {"length": 1}
    assert cache.offer(KEY, offered(DATA))
    assert bytes_of(cache.get(KEY)) == DATA


def test_the_least_recently_used_go_first_in_every_process(
    tmp_path: Path, clock: HeldClock
) -> None:
    entries = [bytes([number]) * 1_000 for number in range(12)]
    cache = opened(tmp_path, clock, budget=10_000)
    for data in entries[:10]:
        clock.pass_seconds(1)
        assert cache.offer(key_of(data), offered(data))
    clock.pass_seconds(1)
    assert opened(tmp_path, clock, budget=10_000).get(key_of(entries[0])) is not None

    clock.pass_seconds(1)
    assert cache.offer(key_of(entries[10]), offered(entries[10]))

    held = [number for number in range(12) if cache.get(key_of(entries[number])) is not None]
    assert held == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_count_that_drifted_is_set_right_when_room_is_short(
    tmp_path: Path, clock: HeldClock
) -> None:
    cache = opened(tmp_path, clock, budget=10_000)
    cache.offer(KEY, offered(DATA[:0]))
    small = bytes(1_000)
    cache.offer(key_of(small), offered(small))
    (tmp_path / ".lock").write_text("9999999", encoding="ascii")

    other = bytes([1]) * 8_000
    assert cache.offer(key_of(other), offered(other))

    assert cache.get(key_of(small)) is not None
    assert (tmp_path / ".lock").read_text(encoding="ascii") == "9000"


def test_a_file_on_the_same_disk_is_not_copied(tmp_path: Path, clock: HeldClock) -> None:
    source = tmp_path / "scratch"
    source.write_bytes(DATA)
    cache = opened(tmp_path / "cache", clock)

    assert cache.offer(KEY, Offering(view=memoryview(DATA), path=source))

    (file,) = files(tmp_path / "cache")
    assert file.stat().st_ino == source.stat().st_ino


def test_a_file_that_cannot_be_linked_is_copied(tmp_path: Path, clock: HeldClock) -> None:
    cache = opened(tmp_path / "cache", clock)

    assert cache.offer(KEY, Offering(view=memoryview(DATA), path=tmp_path / "gone"))

    assert bytes_of(cache.get(KEY)) == DATA


@pytest.mark.crash
def test_a_killed_writer_leaves_a_draft_that_the_next_start_removes(
    tmp_path: Path, clock: HeldClock
) -> None:
    command = [sys.executable, "-c", STALLED_WRITER, str(tmp_path)]
    cache = opened(tmp_path, clock)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline().strip() == "written"
        cache.sweep()
        assert len(list((tmp_path / ".drafts").iterdir())) == 1  # it lives

        writer.send_signal(signal.SIGKILL)
        writer.wait()

        cache.sweep()
        assert list((tmp_path / ".drafts").iterdir()) == []
        assert files(tmp_path) == []
