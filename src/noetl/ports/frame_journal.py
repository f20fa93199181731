"""Finished effects of a frame's rows, kept where the frame's next attempt finds them."""

from collections.abc import Sequence
from typing import Protocol

from noetl.domain.work import JournalEntry
from noetl.kernel.ids import ExecutionId, FrameId


class FrameJournal(Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    J1  what was appended is read back in order, also by another process
    J2  an append that returned survives the death of the process and of the machine
    J3  an append that died half way leaves the entries before it readable
    J4  removing a frame's journal removes that one; removing again is not an error
    """

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None: ...

    async def read(self, execution: ExecutionId, frame: FrameId) -> list[JournalEntry]: ...

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None: ...
