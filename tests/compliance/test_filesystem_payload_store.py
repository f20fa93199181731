"""A folder keeps its promises, also when a writer is killed."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.filesystem.payload_store import FilesystemPayloadStore
from noetl.domain.payload import PayloadReference, payload_key, reference_to
from noetl.testing.compliance.payload_store import (
    SCOPE,
    TEXT,
    Damage,
    PayloadStoreCompliance,
    whole,
)

PUTS_BEFORE_DEATH = 100

OPEN = """
import asyncio, sys
from pathlib import Path
from noetl.adapters.filesystem.payload_store import FilesystemPayloadStore
from noetl.testing.byte_streams import pieces, sample
from noetl.testing.compliance.payload_store import SCOPE, TEXT

store = FilesystemPayloadStore(Path(sys.argv[1]))
"""
STALLED_WRITER = f"""{OPEN}
async def half():
    yield sample(8_000_000)
    yield sample(1)
    print("half way", flush=True)
    await asyncio.Event().wait()

asyncio.run(store.put(SCOPE, half(), TEXT))
"""
BUSY_WRITER = f"""{OPEN}
async def main():
    for size in range(1_000, 1_000_000, 8):
        data = [sample(size + number) for number in range(8)]
        puts = [store.put(SCOPE, one, TEXT) for one in data[:4]]
        puts += [store.put(SCOPE, pieces(one), TEXT) for one in data[4:]]
        for reference in await asyncio.gather(*puts):
            print(reference.sha256, flush=True)

asyncio.run(main())
"""


def lines_until_killed(program: str, root: Path, lines_max: int) -> list[str]:
    command = [sys.executable, "-c", program, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline().strip() for _ in range(lines_max)]
        writer.send_signal(signal.SIGKILL)
        return lines


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


class TestFilesystemPayloadStore(PayloadStoreCompliance):
    @pytest.fixture
    async def payload_store(self, tmp_path: Path) -> AsyncIterator[FilesystemPayloadStore]:
        store = FilesystemPayloadStore(tmp_path)
        yield store
        await store.close()

    @pytest.fixture
    def damage(self, tmp_path: Path) -> Damage:
        async def overwrite(reference: PayloadReference, data: bytes) -> None:
            path = tmp_path / payload_key(reference.scope, reference.sha256)
            path.write_bytes(data)

        return overwrite

    @pytest.mark.crash
    async def test_b5_a_writer_killed_half_way_leaves_nothing(
        self, payload_store: FilesystemPayloadStore, tmp_path: Path
    ) -> None:
        assert lines_until_killed(STALLED_WRITER, tmp_path, 1) == ["half way"]

        (draft,) = files_below(tmp_path)
        assert draft.parent.name == ".drafts"
        assert await payload_store.list_stored(SCOPE) == []

    @pytest.mark.crash
    async def test_b5_a_killed_writer_leaves_only_whole_objects(
        self, payload_store: FilesystemPayloadStore, tmp_path: Path
    ) -> None:
        acknowledged = lines_until_killed(BUSY_WRITER, tmp_path, PUTS_BEFORE_DEATH)

        stored = await payload_store.list_stored(SCOPE)

        assert set(acknowledged) <= {each.sha256 for each in stored}
        for each in stored:
            reference = reference_to(SCOPE, each, TEXT)
            assert len(await whole(payload_store, reference)) == each.byte_length
