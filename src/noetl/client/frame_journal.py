"""The journals of frames that the server keeps, for workers on any machine."""

from collections.abc import Sequence

from noetl.client.connection import Connection
from noetl.domain.work import JournalEntry
from noetl.domain.work_messages import Acknowledged, JournalAppend, JournalName, JournalRead
from noetl.kernel.ids import ExecutionId, FrameId


class HttpFrameJournal:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        body = JournalAppend(execution_id=execution, frame_id=frame, entries=tuple(entries))
        await self._connection.post("/api/work/journals/append", body, Acknowledged)

    async def read(self, execution: ExecutionId, frame: FrameId) -> list[JournalEntry]:
        name = JournalName(execution_id=execution, frame_id=frame)
        found = await self._connection.post("/api/work/journals/read", name, JournalRead)
        return list(found.entries)

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        name = JournalName(execution_id=execution, frame_id=frame)
        await self._connection.post("/api/work/journals/remove", name, Acknowledged)
