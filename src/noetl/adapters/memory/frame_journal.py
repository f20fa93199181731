"""FrameJournal in a dict."""

from collections.abc import Sequence

from noetl.domain.work import JournalEntry
from noetl.kernel.ids import ExecutionId, FrameId


class MemoryFrameJournal:
    def __init__(self) -> None:
        self._entries: dict[tuple[ExecutionId, FrameId], list[JournalEntry]] = {}

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        self._entries.setdefault((execution, frame), []).extend(entries)

    async def read(self, execution: ExecutionId, frame: FrameId) -> list[JournalEntry]:
        return list(self._entries.get((execution, frame), ()))

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        self._entries.pop((execution, frame), None)
