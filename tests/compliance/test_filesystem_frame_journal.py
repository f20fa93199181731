"""Frame journals in a folder, also when their writer is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.adapters.filesystem.frame_journal import FilesystemFrameJournal
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.testing.compliance.frame_journal import (
    EXECUTION,
    FRAME,
    FrameJournalCompliance,
    Reopen,
    Tear,
    entry,
)

APPENDS_BEFORE_DEATH = 50

BUSY_WRITER = """
import asyncio, sys
from pathlib import Path
from noetl.adapters.filesystem.frame_journal import FilesystemFrameJournal
from noetl.testing.compliance.frame_journal import EXECUTION, FRAME, entry

async def main():
    journal = FilesystemFrameJournal(Path(sys.argv[1]))
    for row in range(1_000_000):
        await journal.append(EXECUTION, FRAME, [entry(row)])
        print(row, flush=True)

asyncio.run(main())
"""


def rows_until_killed(folder: Path) -> list[int]:
    command = [sys.executable, "-c", BUSY_WRITER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        rows = [int(writer.stdout.readline()) for _ in range(APPENDS_BEFORE_DEATH)]
        writer.send_signal(signal.SIGKILL)
        return rows


class TestFilesystemFrameJournal(FrameJournalCompliance):
    @pytest.fixture
    def frame_journal(self, tmp_path: Path) -> FilesystemFrameJournal:
        return FilesystemFrameJournal(tmp_path / "journals")

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Reopen:
        return lambda: FilesystemFrameJournal(tmp_path / "journals")

    @pytest.fixture
    def tear(self, tmp_path: Path) -> Tear:
        def cut(execution: ExecutionId, frame: FrameId, bytes_cut: int) -> None:
            path = tmp_path / "journals" / execution / f"{frame}.jsonl"
            path.write_bytes(path.read_bytes()[:-bytes_cut])

        return cut

    @pytest.mark.crash
    async def test_j2_what_was_acknowledged_survives_the_death_of_the_writer(
        self, frame_journal: FilesystemFrameJournal, tmp_path: Path
    ) -> None:
        rows = rows_until_killed(tmp_path / "journals")

        read = await frame_journal.read(EXECUTION, FRAME)

        assert read[: len(rows)] == [entry(row) for row in rows]
        assert read == [entry(row) for row in range(len(read))]

    async def test_the_last_journal_takes_its_folder_along(
        self, frame_journal: FilesystemFrameJournal, tmp_path: Path
    ) -> None:
        await frame_journal.append(EXECUTION, FRAME, [entry(1)])
        await frame_journal.remove(EXECUTION, FRAME)

        assert list((tmp_path / "journals").iterdir()) == []

    async def test_a_folder_that_cannot_be_written_says_what_to_do(self, tmp_path: Path) -> None:
        (tmp_path / "journals").write_text("a file where the folder should be")

        with pytest.raises(StoreUnavailable, match="give the folder space and permissions"):
            await FilesystemFrameJournal(tmp_path / "journals").append(EXECUTION, FRAME, [entry(1)])
