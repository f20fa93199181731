"""What a folder of objects must survive: full disks, dead writers, strangers."""

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
from noetl.adapters.filesystem.object_store import DRAFT_SECONDS_MAX, FilesystemObjectStore
from noetl.kernel.errors import StoreUnavailable
from noetl.testing.bounded_memory import MIB
from noetl.testing.byte_streams import broken, pieces, sample

KEY = "some/folder/object.json"
NOBODY = 65_534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "not" / "yet" / "there"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[FilesystemObjectStore]:
    opened = FilesystemObjectStore(root)
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
    store: FilesystemObjectStore, root: Path
) -> None:
    await store.create("a/small", b"small")
    await store.create("a/large", pieces(sample(3 * MIB)))
    await store.replace("a/small", b"other")

    assert files_below(root) == ["a/large", "a/small"]


async def test_creating_again_leaves_the_file_alone(
    store: FilesystemObjectStore, root: Path
) -> None:
    await store.create(KEY, b"same")
    before = (root / KEY).stat()

    await store.create(KEY, b"same")
    await asyncio.gather(*(store.create(KEY, pieces(b"same")) for _ in range(16)))

    after = (root / KEY).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert files_below(root) == [KEY]


async def test_creating_again_writes_nothing(store: FilesystemObjectStore) -> None:
    stored = await store.create(KEY, sample(MIB))

    with small_disk(0):
        assert await store.create(KEY, sample(MIB)) == stored


async def test_a_reader_keeps_the_bytes_that_it_began_with(store: FilesystemObjectStore) -> None:
    await store.create(KEY, sample(3 * MIB))

    chunks = store.read(KEY)
    begun = await anext(chunks)
    await store.replace(KEY, b"other")
    rest = [chunk async for chunk in chunks]

    assert begun + b"".join(rest) == sample(3 * MIB)


def test_a_draft_does_not_take_a_name_that_is_taken(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"first")
    draft = Draft(tmp_path / "drafts")

    draft.write(b"second")
    assert not draft.publish(target)
    draft.discard()

    assert target.read_bytes() == b"first"
    assert files_below(tmp_path) == ["target"]


class Syncs:
    """What is made safe on the disk, by path, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[Path] = []
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self._hear)

    def _hear(self, descriptor: int) -> None:
        self.paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        self._sync(descriptor)


async def test_bytes_are_safe_before_their_name_and_both_before_it_is_said(
    store: FilesystemObjectStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create("some/first", b"x")
    syncs = Syncs(monkeypatch)

    for write in (store.create, store.replace):
        syncs.paths.clear()
        await write("some/second", b"x")
        draft, folder = syncs.paths
        assert (draft.parent, folder) == (root / ".drafts", root / "some")


async def test_what_is_seen_is_safe(
    store: FilesystemObjectStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create(KEY, b"x")
    syncs = Syncs(monkeypatch)

    await store.head(KEY)
    await store.create(KEY, b"x")

    assert syncs.paths == [(root / KEY).parent] * 2


async def test_a_source_that_breaks_leaves_no_draft(
    store: FilesystemObjectStore, root: Path
) -> None:
    with pytest.raises(ConnectionResetError):
        await store.create(KEY, broken(sample(2 * MIB)))

    assert files_below(root) == []


async def test_a_create_cancelled_while_it_writes_leaves_no_draft(
    store: FilesystemObjectStore, root: Path
) -> None:
    writing = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        block = sample(16 * MIB)
        writing.set()
        yield block

    putting = asyncio.create_task(store.create(KEY, source()))
    await writing.wait()
    putting.cancel()
    await asyncio.wait([putting])

    assert putting.cancelled()
    assert files_below(root) == []


async def test_who_is_cancelled_waits_for_the_thread(store: FilesystemObjectStore) -> None:
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
    store: FilesystemObjectStore, root: Path, streamed: bool
) -> None:
    data = sample(3 * MIB + 5)

    with small_disk(MIB + 100), pytest.raises(StoreUnavailable, match=r"too large.*space"):
        await store.create(KEY, pieces(data) if streamed else data)

    assert files_below(root) == []
    assert (await store.create(KEY, data)).byte_length == len(data)


@pytest.mark.parametrize("streamed", [False, True])
async def test_missing_rights_are_said(
    store: FilesystemObjectStore, tmp_path: Path, streamed: bool
) -> None:
    with no_rights(tmp_path), pytest.raises(StoreUnavailable, match=r"denied.*permissions"):
        await store.create(KEY, pieces(b"x") if streamed else b"x")

    assert files_below(tmp_path) == []


async def test_a_file_in_the_way_of_the_root_is_said(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.write_text("in the way")
    store = FilesystemObjectStore(root)

    with pytest.raises(StoreUnavailable, match="Not a directory"):
        await store.create(KEY, b"x")
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        await store.list_objects("")

    await store.close()


async def test_old_drafts_of_dead_writers_are_swept_and_young_ones_are_not(root: Path) -> None:
    drafts = root / ".drafts"
    drafts.mkdir(parents=True)
    old, young = drafts / "old", drafts / "young"
    for draft in (old, young):
        draft.write_bytes(b"half of an object")
    long_ago = young.stat().st_mtime - DRAFT_SECONDS_MAX - 60
    os.utime(old, (long_ago, long_ago))
    store = FilesystemObjectStore(root)

    await store.create(KEY, b"x")

    assert not old.exists()
    assert young.exists()
    assert len(await store.list_objects("")) == 1
    await store.close()


async def test_what_cannot_be_a_key_is_not_listed(store: FilesystemObjectStore, root: Path) -> None:
    await store.create(KEY, b"ours")
    (root / "some" / ".hidden").write_text("not an object")
    (root / "some" / "with spaces").write_text("not an object")

    assert [facts.key for facts in await store.list_objects("")] == [KEY]


async def test_a_listing_looks_only_where_keys_may_follow(
    store: FilesystemObjectStore, root: Path
) -> None:
    for folder in "abc":
        await store.create(f"{folder}/x", b"x")
    calls = FileCalls()
    calls.folder = str(root)

    page = await store.list_objects("", after="b/w")
    calls.folder = None

    assert [facts.key for facts in page] == ["b/x", "c/x"]
    assert str(root / "a") not in calls.paths


async def test_a_reader_that_stops_early_gives_the_file_back(
    store: FilesystemObjectStore,
) -> None:
    await store.create(KEY, sample(3 * MIB))
    opened_before = len(os.listdir("/proc/self/fd"))

    chunks = store.read(KEY)
    await anext(chunks)
    assert isinstance(chunks, AsyncGenerator)
    await chunks.aclose()

    assert len(os.listdir("/proc/self/fd")) == opened_before


class FileCalls:
    """The threads that touch files below a folder. Python lets nobody remove an audit hook."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.threads: set[int] = set()
        self.paths: set[str] = set()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is not None and (event == "open" or event.startswith("os.")):
            paths = [os.fsdecode(each) for each in arguments if isinstance(each, str | os.PathLike)]
            if any(path.startswith(self.folder) for path in paths):
                self.threads.add(threading.get_ident())
                self.paths |= set(paths)


async def test_no_file_is_touched_on_the_thread_of_the_loop(
    store: FilesystemObjectStore, root: Path
) -> None:
    calls = FileCalls()
    calls.folder = str(root)

    await store.create(KEY, pieces(sample(2 * MIB)))
    await store.create("other", b"whole")
    await store.replace("other", b"replaced")
    async for _ in store.read(KEY):
        pass
    await store.list_objects("")
    await store.head(KEY)
    await store.read_range(KEY, 5, 10)
    await store.delete(KEY)
    calls.folder = None

    assert calls.threads
    assert threading.get_ident() not in calls.threads
