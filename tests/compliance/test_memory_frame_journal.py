"""The reference adapter keeps every promise that memory can keep."""

import pytest

from noetl.adapters.memory.frame_journal import MemoryFrameJournal
from noetl.testing.compliance.frame_journal import FrameJournalCompliance, Reopen, Tear


class TestMemoryFrameJournal(FrameJournalCompliance):
    @pytest.fixture
    def frame_journal(self) -> MemoryFrameJournal:
        return MemoryFrameJournal()

    @pytest.fixture
    def reopen(self, frame_journal: MemoryFrameJournal) -> Reopen:
        return lambda: frame_journal

    @pytest.fixture
    def tear(self) -> Tear:
        pytest.skip("J3: an append in memory is whole or has not happened")
