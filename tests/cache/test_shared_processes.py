"""Regions between processes: mapped without a copy, and gone when their producer was killed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc

from noetl.adapters.cache.region import HEADER
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.kernel.instant import plus
from noetl.testing.compliance.result_cache import LEASE_END, bytes_of, key_of, offered

ROWS = 2_000_000
DATA = bytes(range(256)) * 4_000
KEY = key_of(DATA)

OPEN = """
import sys
from pathlib import Path
from noetl.adapters.cache import shared_memory
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.testing.compliance.result_cache import LEASE_END, key_of, offered

options = SharedMemoryOptions(home_id="home", node_id="node", folder=Path(sys.argv[1]))
cache = SharedMemoryResultCache(options, utc_now)
data = bytes(range(256)) * 4_000
"""
PRODUCER = f"""{OPEN}
assert cache.offer(key_of(data), offered(data, LEASE_END))
print("shared", flush=True)
sys.stdin.read()
"""
STALLED_PRODUCER = f"""{OPEN}
whole = shared_memory._write

def half(descriptor, view, offset):
    whole(descriptor, view[: len(view) // 2], offset)
    print("half way", flush=True)
    sys.stdin.read()

shared_memory._write = half
cache.offer(key_of(data), offered(data, LEASE_END))
"""
TABLE_PRODUCER = f"""{OPEN}
import pyarrow as pa
from pyarrow import ipc

sink = pa.BufferOutputStream()
table = pa.table({{"number": pa.array(range({ROWS}), pa.int64())}})
with ipc.new_file(sink, table.schema) as writer:
    writer.write_table(table)
data = bytes(sink.getvalue())
assert cache.offer(key_of(data), offered(data, LEASE_END))
print(key_of(data).sha256, len(data), flush=True)
"""
FULL = f"""{OPEN}
small, large = data[:1000], data
assert cache.offer(key_of(small), offered(small))
assert not cache.offer(key_of(large), offered(large, LEASE_END))
assert cache.stats().refusals == {{"no_space": 1}}, cache.stats()
assert bytes(cache.get(key_of(small)).view) == small
assert cache.get(key_of(large)) is None
assert cache.stats().entries == 1
print("it refused", flush=True)
"""


def opened(folder: Path, budget_bytes: int = 2**30) -> SharedMemoryResultCache:
    options = SharedMemoryOptions(
        home_id="home", node_id="node", folder=folder, budget_bytes=budget_bytes
    )
    return SharedMemoryResultCache(options, utc_now)


@contextmanager
def running(program: str, folder: Path, word: str) -> Iterator[subprocess.Popen[str]]:
    """A process that said its word; it ends when its input does, or when it is killed."""
    command = [sys.executable, "-c", program, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == word
        try:
            yield process
        finally:
            process.kill()


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("noetl-home-*"))


def test_two_processes_read_one_region_without_a_copy(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", TABLE_PRODUCER, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    sha256, byte_length = answer.stdout.split()
    key = type(KEY)(
        tenant_id="acme",
        organization_id="research",
        execution_id="42",
        sha256=sha256,
        byte_length=int(byte_length),
    )
    allocated = pa.total_allocated_bytes()

    found = opened(tmp_path).get(key)
    assert found is not None
    table = ipc.open_file(pa.BufferReader(found.view)).read_all()

    assert table.num_rows == ROWS
    start = pa.py_buffer(found.view).address
    column = table.column("number").chunk(0).buffers()[1]
    assert start % 64 == 0
    assert column.address % 8 == 0  # inside its file, Arrow promises no more
    assert start <= column.address < start + key.byte_length
    assert pa.total_allocated_bytes() - allocated < 100_000


@pytest.mark.crash
def test_a_producer_killed_half_way_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    with running(STALLED_PRODUCER, tmp_path, "half way") as producer:
        (part,) = files(tmp_path)
        assert part.name.endswith(".part")
        assert part.stat().st_size == len(DATA) + HEADER.size  # it counts from the start
        cache = opened(tmp_path)
        assert cache.get(KEY) is None
        assert cache.sweep() == 0  # it lives

        producer.send_signal(signal.SIGKILL)
        producer.wait()

        assert opened(tmp_path).sweep() == 1
        assert files(tmp_path) == []


@pytest.mark.crash
def test_a_producer_killed_after_it_wrote_leaves_nothing_after_the_next_start(
    tmp_path: Path,
) -> None:
    with running(PRODUCER, tmp_path, "shared") as producer:
        cache = opened(tmp_path)
        assert cache.sweep() == 0
        assert bytes_of(cache.get(KEY)) == DATA

        producer.send_signal(signal.SIGKILL)
        producer.wait()

        found = cache.get(KEY)  # whole, so it may be read until somebody sweeps
        assert opened(tmp_path).sweep() == 1
        assert files(tmp_path) == []
        assert bytes_of(found) == DATA


@pytest.mark.crash
def test_a_dead_producer_that_nobody_waited_for_is_dead(tmp_path: Path) -> None:
    with running(PRODUCER, tmp_path, "shared") as producer:
        producer.send_signal(signal.SIGKILL)
        assert producer.stdout is not None
        assert producer.stdout.read() == ""  # its end closes the pipe; it stays a zombie

        cache = opened(tmp_path)
        while files(tmp_path):  # closing comes a moment before the state changes
            cache.sweep()


@pytest.mark.crash
def test_what_a_killed_producer_left_makes_room_without_a_sweep(tmp_path: Path) -> None:
    with running(STALLED_PRODUCER, tmp_path, "half way") as producer:
        other = bytes(len(DATA))
        cache = opened(tmp_path, budget_bytes=len(DATA) + HEADER.size)
        lease_end = plus(utc_now(), seconds=60)
        assert not cache.offer(key_of(other), offered(other, lease_end))

        producer.send_signal(signal.SIGKILL)
        producer.wait()

        assert cache.offer(key_of(other), offered(other, LEASE_END))
        assert bytes_of(cache.get(key_of(other))) == other


def test_a_full_tmpfs_is_a_refusal(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=128k tmpfs '{tmp_path}'"
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    try:
        probe = subprocess.run([*inside, mount], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if probe.returncode:
        pytest.skip("nobody may mount here, not even in a namespace of their own")

    answer = subprocess.run(
        [*inside, f'{mount} && exec "$0" "$@"', sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.stdout.strip(), answer.stderr) == ("it refused", "")
