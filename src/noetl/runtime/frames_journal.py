"""What a frame's rows have done, on its way to the frame's journal: many entries, few flushes.

A row that waits for its entry is flushed at once, together with whatever else is there; entries
of rows that have ended wait for company, but not for long.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from noetl.domain.work import Call, FrameWork, JournalEntry
from noetl.kernel.errors import InvariantBroken, NoETLError
from noetl.pipeline.job import Hold
from noetl.ports.clock import Clock
from noetl.ports.frame_journal import FrameJournal
from noetl.runtime.worker_patience import insisted

FLUSH_ENTRIES = 64
FLUSH_SECONDS_MAX = 0.05

RowCalls = dict[tuple[str, int], Call]
"""Calls of one row by task and run."""


@dataclass(slots=True)
class _Group:
    done: "asyncio.Future[NoETLError | None]"
    entries: list[JournalEntry] = field(default_factory=list)


class JournalBuffer:
    def __init__(self, journal: FrameJournal, work: FrameWork, hold: Hold, clock: Clock) -> None:
        self.is_empty = work.attempt == 1  # whether there is no journal to remove
        self._journal = journal
        self._work = work
        self._hold = hold
        self._clock = clock
        self._group = _new_group()
        self._flushing: _Group | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._timer: asyncio.Task[None] | None = None

    async def earlier(self) -> dict[int, RowCalls]:
        """What earlier holders of the frame have recorded, by row."""
        work, rows = self._work, dict[int, RowCalls]()
        if work.attempt == 1:
            return rows
        entries = await insisted(
            lambda: self._journal.read(work.execution_id, work.frame_id),
            self._hold.check,
            self._clock,
        )
        for entry in entries:
            rows.setdefault(entry.row, {})[entry.call.task, entry.call.run] = entry.call
        return rows

    async def record(self, row: int, call: Call) -> None:
        """Returns when the call is durable. Raises ClaimLost."""
        self._hold.check()
        group = self._group
        group.entries.append(JournalEntry(row=row, call=call))
        self._flush()
        error = await asyncio.shield(group.done)  # others wait for the same group
        if error is not None:
            raise error

    def note(self, row: int, calls: Iterable[Call]) -> None:
        """The row has ended: nothing waits for these. Calls without effect need no journal."""
        entries = self._group.entries
        entries += [JournalEntry(row=row, call=call) for call in calls if call.effect is not None]
        if len(entries) >= FLUSH_ENTRIES:
            self._flush()
        elif entries and self._timer is None:
            self._timer = asyncio.create_task(self._flush_later())

    async def close(self) -> None:
        """Nothing is appended after this; what nobody waited for is dropped."""
        if self._timer is not None:
            self._timer.cancel()
        self._group = _new_group()
        if self._flusher is not None:
            await asyncio.wait([self._flusher])

    def abort(self) -> None:
        """Wait for nothing, not even for a flush that is on its way."""
        if self._flusher is not None:
            self._flusher.cancel()

    async def save(self) -> None:
        """The frame ends without a report: leave to the next holder what is known, if possible."""
        entries, self._group.entries = self._group.entries, []
        if entries:
            with suppress(NoETLError):
                await self._append(entries)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_all())
            self._flusher.add_done_callback(self._release)

    async def _flush_later(self) -> None:
        await self._clock.sleep(FLUSH_SECONDS_MAX)
        self._timer = None
        self._flush()

    async def _flush_all(self) -> None:
        while self._group.entries:
            group = self._flushing = self._group
            self._group = _new_group()
            error: NoETLError | None = None
            try:
                append = partial(self._append, group.entries)
                await insisted(append, self._hold.check, self._clock)
            except NoETLError as refusal:
                error = refusal
            group.done.set_result(error)

    async def _append(self, entries: Sequence[JournalEntry]) -> None:
        self.is_empty = False
        await self._journal.append(self._work.execution_id, self._work.frame_id, entries)

    def _release(self, flusher: "asyncio.Task[None]") -> None:
        """A flusher that died of something unforeseen must not leave rows waiting."""
        if flusher.cancelled() or flusher.exception() is not None:
            cause = "was cancelled" if flusher.cancelled() else f"failed: {flusher.exception()!r}"
            for group in (self._flushing, self._group):
                if group is not None and not group.done.done():
                    group.done.set_result(InvariantBroken(f"the frame journal {cause}"))
            self._group = _new_group()


class RowJournal:
    """The journal of one row."""

    __slots__ = ("_buffer", "_row")

    def __init__(self, buffer: JournalBuffer, row: int) -> None:
        self._buffer = buffer
        self._row = row

    async def record(self, call: Call) -> None:
        await self._buffer.record(self._row, call)


def _new_group() -> _Group:
    return _Group(asyncio.get_running_loop().create_future())
