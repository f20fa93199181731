"""What a worker records of a frame, the next holder finds, whatever home it has."""

import pytest

from noetl.client.connection import Connection
from noetl.client.frame_journal import HttpFrameJournal
from noetl.domain.work import Call, JournalEntry
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import ExecutionId, FrameId
from tests.api.running import WAITING, Api

FRAME = FrameId("7")
ENTRIES = [JournalEntry(row=row, call=Call(task="pay", effect="fired")) for row in range(3)]


async def test_entries_are_kept_by_the_server_and_removed(api: Api, connection: Connection) -> None:
    execution = ExecutionId(await api.start(WAITING))
    journal = HttpFrameJournal(connection)
    await journal.append(execution, FRAME, ENTRIES[:2])
    await journal.append(execution, FRAME, ENTRIES[2:])

    assert await journal.read(execution, FRAME) == ENTRIES
    assert await api.engine.journal.read(execution, FRAME) == ENTRIES
    await journal.remove(execution, FRAME)
    await journal.remove(execution, FRAME)
    assert await journal.read(execution, FRAME) == []


async def test_a_journal_belongs_to_an_execution_that_exists(connection: Connection) -> None:
    with pytest.raises(ExecutionNotFound):
        await HttpFrameJournal(connection).append(ExecutionId("1"), FRAME, ENTRIES)
