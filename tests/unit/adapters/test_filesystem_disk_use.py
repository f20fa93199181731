"""How a folder of objects uses the disk: its syncs, its threads, its looks."""

import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.testing.bounded_memory import MIB
from noetl.testing.byte_streams import pieces, sample

KEY = "some/folder/object.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "not" / "yet" / "there"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[FilesystemObjectStore]:
    opened = FilesystemObjectStore(root)
    yield opened
    await opened.close()


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
