"""A folder keeps its promises, also when a writer is killed."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.ports.object_store import ObjectStore
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.object_store_keys import KEY, listed, whole
from noetl.testing.compliance.payload_store import PayloadStoreCompliance

WRITES_BEFORE_DEATH = 100

OPEN = """
import asyncio, sys
from pathlib import Path
from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.testing.byte_streams import pieces, sample

store = FilesystemObjectStore(Path(sys.argv[1]))
"""
STALLED_WRITER = f"""{OPEN}
async def half():
    yield sample(8_000_000)
    yield sample(1)
    print("half way", flush=True)
    await asyncio.Event().wait()

asyncio.run(getattr(store, sys.argv[2])({KEY!r}, half()))
"""
BUSY_WRITER = f"""{OPEN}
async def main():
    for size in range(1_000, 1_000_000, 8):
        data = [sample(size + number) for number in range(8)]
        writes = [store.create(f"busy/{{len(one)}}", one) for one in data[:4]]
        writes += [store.replace(f"busy/{{len(one)}}", pieces(one)) for one in data[4:]]
        for stored in await asyncio.gather(*writes):
            print(stored.key, flush=True)

asyncio.run(main())
"""


def lines_until_killed(program: str, root: Path, lines_max: int, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", program, str(root), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline().strip() for _ in range(lines_max)]
        writer.send_signal(signal.SIGKILL)
        return lines


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


class InFolder:
    @pytest.fixture
    async def object_store(self, tmp_path: Path) -> AsyncIterator[ObjectStore]:
        store = FilesystemObjectStore(tmp_path)
        yield store
        await store.close()


class TestFilesystemObjectStore(InFolder, ObjectStoreCompliance):
    @pytest.fixture
    def reopened(self, tmp_path: Path) -> Callable[[], ObjectStore]:
        return lambda: FilesystemObjectStore(tmp_path)

    @pytest.mark.crash
    async def test_o3_a_writer_killed_half_way_leaves_nothing(
        self, object_store: ObjectStore, tmp_path: Path
    ) -> None:
        assert lines_until_killed(STALLED_WRITER, tmp_path, 1, "create") == ["half way"]

        (draft,) = files_below(tmp_path)
        assert draft.parent.name == ".drafts"
        assert await object_store.list_objects("") == []

    @pytest.mark.crash
    async def test_o3_a_replacing_writer_killed_half_way_leaves_the_old_bytes(
        self, object_store: ObjectStore, tmp_path: Path
    ) -> None:
        await object_store.create(KEY, b"old")

        assert lines_until_killed(STALLED_WRITER, tmp_path, 1, "replace") == ["half way"]

        assert await whole(object_store) == b"old"

    @pytest.mark.crash
    async def test_o11_a_killed_writer_leaves_only_whole_objects(
        self, object_store: ObjectStore, tmp_path: Path
    ) -> None:
        acknowledged = lines_until_killed(BUSY_WRITER, tmp_path, WRITES_BEFORE_DEATH)

        keys = await listed(object_store, "busy/", 1_000)

        assert set(acknowledged) <= set(keys)
        for key in keys:
            assert len(await whole(object_store, key)) == int(key.rpartition("/")[2])


class TestFilesystemPayloads(InFolder, PayloadStoreCompliance):
    pass
