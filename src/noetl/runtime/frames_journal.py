"""What a frame's rows have done, on its way to the frame's journal: many entries, few flushes.

A row that waits for its entry is flushed at once, together with whatever else is there; entries
of rows that have ended wait for company, but not for long. Before a row fires its first effect, a
mark says that it may have; one mark stands for as many rows as begin within a short time.
"""

import asyncio
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from noetl.domain.execution.windows import journals_of
from noetl.domain.work import Call, FrameWork, JournalEntry
from noetl.kernel.errors import InvariantBroken, NoETLError
from noetl.kernel.ids import FrameId
from noetl.pipeline.job import Hold
from noetl.ports.clock import Clock
from noetl.ports.frame_journal import FrameJournal
from noetl.runtime.frames_earlier import Earlier
from noetl.runtime.worker_patience import insisted

FLUSH_ENTRIES = 64
FLUSH_SECONDS_MAX = 0.05
MARKED_ROWS_MAX = 64
MARK_SECONDS = 0.05
"""What one mark should last for: rows that are slow beside a flush are marked one by one."""

AHEAD_ROWS_MIN = 8
"""Marks for so many rows are followed by the next one in time, so that no row waits for it."""


@dataclass(slots=True)
class _Group:
    done: "asyncio.Future[NoETLError | None]"
    entries: list[JournalEntry] = field(default_factory=list)


class _Ahead(NamedTuple):
    """When this row begins, it is time to mark the rows from `first` on."""

    when: float
    first: int


_NOWHERE = _Ahead(math.inf, 0)


def journal_of(work: FrameWork) -> FrameId:
    """The holders of a frame share one; a shard that is tried again begins a new one."""
    return journals_of(work.frame_id, work.shard_attempt)[-1]


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
        self._appending: asyncio.Task[None] | None = None  # by the flusher
        self._timer: asyncio.Task[None] | None = None
        self._marks: dict[int, asyncio.Future[NoETLError | None]] = {}  # by row
        self._marked_rows = max(1, work.row_concurrency // 2)  # by the newest mark
        self._marked_at: float | None = None
        self._ahead = _NOWHERE

    async def earlier(self) -> Earlier:
        """What earlier holders of the rows have recorded."""
        work, found = self._work, Earlier()
        rows = range(work.first_index, work.first_index + work.row_count)
        is_reported = bool(work.kept) or work.kept_ref is not None
        *failed, own = journals_of(work.frame_id, work.shard_attempt)
        reported = {*failed, *(work.after if is_reported else ())}
        for frame in (*work.after, *failed, *([own] if work.attempt > 1 else ())):
            read = partial(self._journal.read, work.execution_id, frame)
            entries = await insisted(read, self._hold.check, self._clock)
            found.add(entries, rows, is_reported=frame in reported)
        durable: asyncio.Future[NoETLError | None] = asyncio.get_running_loop().create_future()
        durable.set_result(None)
        self._marks = dict.fromkeys(found.begun, durable)
        return found

    async def begin(self, row: int, *, alone: bool) -> None:
        """Returns when it is durable that the row may have begun. Raises ClaimLost."""
        mark = self._marks.get(row)
        if mark is None:
            self._hold.check()
            mark = self._mark(row, 1) if alone else self._mark_on(row)
        elif row >= self._ahead.when:
            self._mark_on(self._ahead.first)
        error = mark.result() if mark.done() else await asyncio.shield(mark)
        if error is not None:
            raise error

    async def record(self, row: int, call: Call) -> None:
        """Returns when the call is durable. Raises ClaimLost."""
        self._hold.check()
        await self._written(JournalEntry(row=row, call=call))

    async def end(self, rows: Sequence[int]) -> None:
        """They failed, and may be run again by a later frame, which finds what they have done."""
        ended = [JournalEntry(row=row, has_ended=True) for row in rows if row in self._marks]
        if ended:
            await self._written(*ended)

    async def _written(self, *entries: JournalEntry) -> None:
        group = self._group
        group.entries += entries
        self._flush()
        error = await asyncio.shield(group.done)  # others wait for the same group
        if error is not None:
            raise error

    def _mark_on(self, row: int) -> "asyncio.Future[NoETLError | None]":
        rows, end = self._next_rows(), self._work.first_index + self._work.row_count
        is_last = rows < AHEAD_ROWS_MIN or row + rows >= end or row + rows in self._marks
        self._ahead = _NOWHERE if is_last else _Ahead(row + rows // 2, row + rows)
        return self._mark(row, rows)

    def _mark(self, row: int, rows_max: int) -> "asyncio.Future[NoETLError | None]":
        """This row and those after it, up to one that is marked already."""
        group, end = self._group, self._work.first_index + self._work.row_count
        last = row + 1
        while last < min(row + rows_max, end) and last not in self._marks:
            last += 1
        group.entries.append(JournalEntry(row=row, rows=last - row))
        self._marks.update(dict.fromkeys(range(row, last), group.done))
        self._flush()
        return group.done

    def _next_rows(self) -> int:
        """Twice as many as the last mark stood for if it was soon used up, else fewer."""
        now, before = self._clock.monotonic(), self._marked_at
        self._marked_at = now
        lasted = 0.0 if before is None else now - before
        rows = self._marked_rows * min(2.0, MARK_SECONDS / lasted if lasted > 0 else 2.0)
        self._marked_rows = max(1, min(MARKED_ROWS_MAX, int(rows)))
        return self._marked_rows

    def note(self, row: int, calls: Iterable[Call]) -> None:
        """The row has ended: nothing waits for these. Calls without effect need no journal."""
        entries = self._group.entries
        entries += [JournalEntry(row=row, call=call) for call in calls if call.effect is not None]
        if len(entries) >= FLUSH_ENTRIES:
            self._flush()
        elif entries and self._timer is None:
            self._timer = asyncio.create_task(self._flush_later())

    async def drop(self) -> None:
        """Others know what became of the rows: nothing is appended after this.

        What is on its way is waited for; what is to be tried again, or nobody waited for, is
        dropped.
        """
        self._stop()
        if self._flusher is not None:
            self._flusher.cancel()
        if self._appending is not None:
            await asyncio.wait([self._appending])

    async def leave(self, *, in_time: bool) -> None:
        """The frame ends without a report: the next holder finds what is known, if there is time
        to tell. Nothing is appended after this."""
        try:
            if in_time:
                await self.save()
            else:
                self._abort()
        finally:
            self._stop()
            if self._flusher is not None:
                await asyncio.wait([self._flusher])

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._group = _new_group()

    def _abort(self) -> None:
        """Wait for nothing, not even for a flush that is on its way."""
        for task in (self._flusher, self._appending):
            if task is not None:
                task.cancel()

    async def save(self) -> None:
        """What nobody waits for is written now, if possible."""
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
                append = partial(self._append_apart, group.entries)
                await insisted(append, self._hold.check, self._clock)
            except NoETLError as refusal:
                error = refusal
            group.done.set_result(error)

    async def _append_apart(self, entries: Sequence[JournalEntry]) -> None:
        """Whoever stops the flusher can still wait for what it had begun."""
        self._appending = asyncio.create_task(self._append(entries))
        await asyncio.shield(self._appending)

    async def _append(self, entries: Sequence[JournalEntry]) -> None:
        self.is_empty = False
        await self._journal.append(self._work.execution_id, journal_of(self._work), entries)

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

    async def begin(self, *, alone: bool) -> None:
        await self._buffer.begin(self._row, alone=alone)

    async def record(self, call: Call) -> None:
        await self._buffer.record(self._row, call)

    def tried(self, call: Call) -> None:
        self._buffer.note(self._row, [call])


def _new_group() -> _Group:
    return _Group(asyncio.get_running_loop().create_future())
