"""What a folder of objects must survive: full disks, dead writers, strangers."""

import asyncio
import os
import resource
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
