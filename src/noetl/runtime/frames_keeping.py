"""The journal of a frame whose report is on its way: until then only it tells what rows did."""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from noetl.domain.work import FrameWork
from noetl.kernel.errors import ClaimLost
from noetl.pipeline.job import Hold
from noetl.ports.frame_journal import FrameJournal
from noetl.runtime.frames_journal import JournalBuffer, journal_of


class FrameHold(Hold, Protocol):
    @property
    def is_told_to_wait(self) -> bool:
        """Finish the rows that run, start no others."""
        ...


@dataclass(slots=True)
class KeptJournal:
    """Open inside of `async with`: entries that wait for company are written in their time."""

    journal: FrameJournal
    buffer: JournalBuffer
    work: FrameWork
    hold: FrameHold
    is_needed: bool  # also when the report is recorded

    async def __aenter__(self) -> None:
        """The buffer is open since the frame began."""

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, ClaimLost):  # the next holder may have read it
            await self.buffer.drop()
        elif isinstance(error, asyncio.CancelledError):
            await self.buffer.leave(in_time=self.hold.is_told_to_wait)
        else:
            await self.buffer.leave(in_time=True)

    async def keep(self) -> None:
        """The report was refused: another attempt of the frame has to know what this one did."""
        self.is_needed = True
        await self.buffer.save()

    async def forget(self) -> None:
        """The commit says what became of the rows: their journal has served."""
        if not self.buffer.is_empty and not self.is_needed:
            await self.journal.remove(self.work.execution_id, journal_of(self.work))
