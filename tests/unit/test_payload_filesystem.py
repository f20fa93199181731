"""What a folder of payloads must survive: full disks, dead writers, strangers."""

import asyncio
import os
import resource
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noetl.adapters.filesystem.draft import Draft
from noetl.adapters.filesystem.payload_store import DRAFT_SECONDS_MAX, FilesystemPayloadStore
from noetl.domain.payload import payload_key
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.testing.bounded_memory import MIB
from noetl.testing.byte_streams import broken, pieces, sample

SCOPE = Scope("acme", "research")
TEXT = "text/plain"
NOBODY = 65_534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "not" / "yet" / "there"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[FilesystemPayloadStore]:
    opened = FilesystemPayloadStore(root)
    yield opened
    await opened.close()


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@contextmanager
def small_disk(bytes_max: int) -> Iterator[None]:
    """No file may grow past this size: writing fails in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def no_rights(folder: Path) -> Iterator[None]:
    """Nobody may write there; the superuser may do everything, so be someone else."""
    user = os.geteuid()
    mode = folder.stat().st_mode
    folder.chmod(0o500)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(mode)


async def test_the_folder_holds_the_objects_and_nothing_else(
    store: FilesystemPayloadStore, root: Path
) -> None:
    small = await store.put(SCOPE, b"small", TEXT)
    large = await store.put(SCOPE, pieces(sample(3 * MIB)), TEXT)

    assert files_below(root) == sorted(payload_key(SCOPE, one.sha256) for one in (small, large))


@pytest.mark.parametrize("name", ["..", "../..", "/", "/etc"])
async def test_no_name_leads_out_of_the_root(
    store: FilesystemPayloadStore, root: Path, tmp_path: Path, name: str
) -> None:
    await store.put(Scope(name, name), b"x", TEXT)

    assert len(files_below(root)) == 1
    assert files_below(tmp_path) == [f"not/yet/there/{path}" for path in files_below(root)]


async def test_putting_again_leaves_the_file_alone(
    store: FilesystemPayloadStore, root: Path
) -> None:
    reference = await store.put(SCOPE, b"same", TEXT)
    path = root / payload_key(SCOPE, reference.sha256)
    before = path.stat()

    await store.put(SCOPE, b"same", TEXT)
    await asyncio.gather(*(store.put(SCOPE, pieces(b"same"), TEXT) for _ in range(16)))

    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert len(files_below(root)) == 1


async def test_putting_again_writes_nothing(store: FilesystemPayloadStore) -> None:
    reference = await store.put(SCOPE, sample(MIB), TEXT)

    with small_disk(0):
        assert await store.put(SCOPE, sample(MIB), TEXT) == reference


def test_a_draft_does_not_take_a_name_that_is_taken(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"first")
    draft = Draft(tmp_path / "drafts")

    draft.write(b"second")
    draft.publish(target)
    draft.discard()

    assert target.read_bytes() == b"first"
    assert files_below(tmp_path) == ["target"]


async def test_a_source_that_breaks_leaves_no_draft(
    store: FilesystemPayloadStore, root: Path
) -> None:
    with pytest.raises(ConnectionResetError):
        await store.put(SCOPE, broken(sample(2 * MIB)), TEXT)

    assert files_below(root) == []


async def test_a_put_cancelled_while_it_writes_leaves_no_draft(
    store: FilesystemPayloadStore, root: Path
) -> None:
    writing = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        block = sample(16 * MIB)
        writing.set()
        yield block

    putting = asyncio.create_task(store.put(SCOPE, source(), TEXT))
    await writing.wait()
    putting.cancel()
    await asyncio.wait([putting])

    assert putting.cancelled()
    assert files_below(root) == []


async def test_who_is_cancelled_waits_for_the_thread(store: FilesystemPayloadStore) -> None:
    release = threading.Event()
    finished: list[bool] = []

    working = asyncio.create_task(store._in_thread(lambda: finished.append(release.wait())))
    await asyncio.wait([working], timeout=0.01)
    working.cancel()
    ended_early, _ = await asyncio.wait([working], timeout=0.01)
    release.set()
    await asyncio.wait([working])

    assert not ended_early
    assert working.cancelled()
    assert finished == [True]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_full_disk_is_said_and_leaves_nothing(
    store: FilesystemPayloadStore, root: Path, streamed: bool
) -> None:
    data = sample(3 * MIB + 5)

    with small_disk(MIB + 100), pytest.raises(StoreUnavailable, match=r"too large.*space"):
        await store.put(SCOPE, pieces(data) if streamed else data, TEXT)

    assert files_below(root) == []
    assert (await store.put(SCOPE, data, TEXT)).byte_length == len(data)


@pytest.mark.parametrize("streamed", [False, True])
async def test_missing_rights_are_said(
    store: FilesystemPayloadStore, tmp_path: Path, streamed: bool
) -> None:
    with no_rights(tmp_path), pytest.raises(StoreUnavailable, match=r"denied.*permissions"):
        await store.put(SCOPE, pieces(b"x") if streamed else b"x", TEXT)

    assert files_below(tmp_path) == []


async def test_a_file_in_the_way_of_the_root_is_said(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.write_text("in the way")
    store = FilesystemPayloadStore(root)

    with pytest.raises(StoreUnavailable, match="File exists"):
        await store.put(SCOPE, b"x", TEXT)
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        await store.list_stored(SCOPE)

    await store.close()


async def test_old_drafts_of_dead_writers_are_swept_and_young_ones_are_not(root: Path) -> None:
    drafts = root / ".drafts"
    drafts.mkdir(parents=True)
    old, young = drafts / "old", drafts / "young"
    for draft in (old, young):
        draft.write_bytes(b"half of a payload")
    long_ago = young.stat().st_mtime - DRAFT_SECONDS_MAX - 60
    os.utime(old, (long_ago, long_ago))
    store = FilesystemPayloadStore(root)

    await store.put(SCOPE, b"x", TEXT)

    assert not old.exists()
    assert young.exists()
    assert len(await store.list_stored(SCOPE)) == 1
    await store.close()


async def test_strangers_in_the_folder_are_not_listed(
    store: FilesystemPayloadStore, root: Path
) -> None:
    reference = await store.put(SCOPE, b"ours", TEXT)
    top = root / "acme" / "research"
    leaf = (root / payload_key(SCOPE, reference.sha256)).parent
    for stranger in (top / "README", leaf.parent / "README", leaf / "README"):
        stranger.write_text("not a payload")

    assert [stored.sha256 for stored in await store.list_stored(SCOPE)] == [reference.sha256]


async def test_a_reader_that_stops_early_gives_the_file_back(
    store: FilesystemPayloadStore,
) -> None:
    reference = await store.put(SCOPE, sample(3 * MIB), TEXT)
    opened_before = len(os.listdir("/proc/self/fd"))

    chunks = store.get(reference)
    await anext(chunks)
    assert isinstance(chunks, AsyncGenerator)
    await chunks.aclose()

    assert len(os.listdir("/proc/self/fd")) == opened_before


class FileCalls:
    """The threads that touch files below a folder. Python lets nobody remove an audit hook."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.threads: set[int] = set()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is not None and (event == "open" or event.startswith("os.")):
            paths = [os.fsdecode(each) for each in arguments if isinstance(each, str | os.PathLike)]
            if any(path.startswith(self.folder) for path in paths):
                self.threads.add(threading.get_ident())


async def test_no_file_is_touched_on_the_thread_of_the_loop(
    store: FilesystemPayloadStore, root: Path
) -> None:
    calls = FileCalls()
    calls.folder = str(root)

    reference = await store.put(SCOPE, pieces(sample(2 * MIB)), TEXT)
    await store.put(SCOPE, b"whole", TEXT)
    async for _ in store.get(reference):
        pass
    await store.list_stored(SCOPE)
    await store.delete(reference)
    calls.folder = None

    assert calls.threads
    assert threading.get_ident() not in calls.threads
