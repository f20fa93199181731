"""A frame from its claim to its report: the rows of a loop through the step's pipeline."""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from noetl.domain.execution.names import all_assigned
from noetl.domain.playbook.loop import Loop
from noetl.domain.playbook.model import Playbook
from noetl.domain.work import FrameReport, FrameWork
from noetl.kernel.errors import InvariantBroken
from noetl.kernel.ids import WorkerId
from noetl.pipeline.job import Hold, Job, RowResult
from noetl.ports.clock import Clock
from noetl.ports.frame_journal import FrameJournal
from noetl.ports.payload_store import PayloadStore
from noetl.runtime.frames_earlier import Earlier
from noetl.runtime.frames_journal import JournalBuffer, RowJournal
from noetl.runtime.frames_report import (
    Worked,
    report,
    row_outcomes,
    staged,
    whole_frame_outcomes,
)
from noetl.runtime.frames_rows import Collections
from noetl.runtime.worker_commands import Pipelines, step_of
from noetl.runtime.worker_patience import insisted
from noetl.templates.places import Frame, Iteration

BREATH_SECONDS = 0.02
"""Rows that never wait for anything let heartbeats and others have their turn this often."""


class FrameHold(Hold, Protocol):
    @property
    def is_told_to_wait(self) -> bool:
        """Finish the rows that run, start no others."""
        ...


@dataclass(frozen=True, slots=True)
class FrameEnd:
    report: FrameReport
    has_journal: bool  # to be removed when the report is recorded


class Frames:
    def __init__(
        self, pipelines: Pipelines, payloads: PayloadStore, journal: FrameJournal, clock: Clock
    ) -> None:
        self._pipelines = pipelines
        self._payloads = payloads
        self._journal = journal
        self._clock = clock
        self._collections = Collections(payloads, clock)

    async def run(
        self, work: FrameWork, playbook: Playbook, hold: FrameHold, worker: WorkerId
    ) -> FrameEnd:
        """Raises ClaimLost, and PayloadError when there are no rows to work on."""
        began = self._clock.monotonic()
        rows = await self._collections.rows(work, hold.check)
        buffer = JournalBuffer(self._journal, work, hold, self._clock)
        try:
            frame = _Frame(work, playbook, rows, await buffer.earlier())
            is_whole = frame.loop.frame.process == "frame"
            passing = _Pass(frame, self._pipelines, buffer, hold, self._clock)
            results = await (passing.whole() if is_whole else passing.rows())
        except asyncio.CancelledError:
            buffer.abort()
            raise
        except Exception:
            await buffer.save()
            raise
        finally:
            await buffer.close()
        outcomes = (
            whole_frame_outcomes(work, results[0])
            if is_whole
            else row_outcomes(work.first_index, results)
        )
        output = await insisted(
            lambda: staged(outcomes, self._payloads, work.scope), hold.check, self._clock
        )
        worked = Worked(outcomes, results, round(1000 * (self._clock.monotonic() - began)))
        return FrameEnd(report(work, worker, worked, output), not buffer.is_empty)

    async def forget(self, work: FrameWork) -> None:
        """The commit says what became of the rows: their journal has served."""
        await self._journal.remove(work.execution_id, work.frame_id)


class _Frame:
    """What is the same for all rows, and the job of each."""

    def __init__(
        self,
        work: FrameWork,
        playbook: Playbook,
        rows: list[Any],
        earlier: Earlier,
    ) -> None:
        self.work = work
        self.rows = rows
        self.step = step_of(playbook, work.step)
        if self.step.loop is None:
            raise InvariantBroken(
                f"a frame was handed out for step {work.step!r}, which is no loop"
            )
        self.loop: Loop = self.step.loop
        self._playbook = playbook
        self._earlier = earlier
        self._iterator = self.loop.iterator
        self._total = None if work.mode == "cursor" else work.total
        self._frame = Frame(
            index=work.ordinal,
            base_index=work.first_index,
            rows=rows,
            row_count=work.row_count,
            policy={
                "max_rows": work.row_count,
                "max_seconds": work.seconds_max,
                "lease_seconds": work.lease_seconds,
                "row_concurrency": work.row_concurrency,
                "process": self.loop.frame.process,
            },
        )

    def job(self, index: int, ctx: dict[str, Any]) -> Job:
        item = self.rows[index - self.work.first_index]
        iteration = Iteration(iterator=self._iterator, item=item, index=index, total=self._total)
        return self._job(index, ctx, iteration)

    def whole_job(self) -> Job:
        return self._job(self.work.first_index, self.work.facts.ctx, None)

    def _job(self, index: int, ctx: dict[str, Any], iteration: Iteration | None) -> Job:
        work = self.work
        return Job(
            scope=work.scope,
            playbook=self._playbook,
            step=self.step,
            visit=work.visit,
            facts=work.facts,
            ctx=ctx,
            iteration=iteration,
            frame=self._frame,
            journal=self._earlier.calls.get(index, {}),
            has_predecessor=index in self._earlier.begun,
            stage_id=work.stage_id,
        )


class _Pass:
    """One pass over the rows: as many at once as the frame allows, started in order."""

    def __init__(
        self,
        frame: _Frame,
        pipelines: Pipelines,
        buffer: JournalBuffer,
        hold: FrameHold,
        clock: Clock,
    ) -> None:
        self._frame = frame
        self._pipelines = pipelines
        self._buffer = buffer
        self._hold = hold
        self._clock = clock
        self._began = self._breathed = clock.monotonic()
        self._results: list[RowResult | None] = [None] * frame.work.row_count
        self._started = 0
        self._has_failed = False
        self._ctx = frame.work.facts.ctx

    async def whole(self) -> list[RowResult]:
        self._hold.check()
        index = self._frame.work.first_index
        journal = RowJournal(self._buffer, index)
        result = await self._pipelines.run(self._frame.whole_job(), journal, self._hold)
        self._buffer.note(index, result.calls)
        return [result]

    async def rows(self) -> list[RowResult]:
        """Those that were started; all of them have ended."""
        work = self._frame.work
        at_once = 1 if work.mode == "sequential" else min(work.row_concurrency, work.row_count)
        if at_once <= 1:
            await self._serve(self._hold)
        else:
            shared = _SharedSlot(self._hold, at_once)
            await _all_of([self._serve_sharing(shared) for _ in range(at_once)])
        return [result for result in self._results if result is not None]

    async def _serve_sharing(self, shared: "_SharedSlot") -> None:
        await self._serve(shared)
        await shared.leave()

    async def _serve(self, hold: Hold) -> None:
        frame, first = self._frame, self._frame.work.first_index
        is_sequential = frame.work.mode == "sequential"
        while self._may_start():
            row = self._started
            self._started += 1
            journal = RowJournal(self._buffer, first + row)
            result = await self._pipelines.run(frame.job(first + row, self._ctx), journal, hold)
            self._results[row] = result
            if result.calls:
                self._buffer.note(first + row, result.calls)
            if result.status == "failed":
                self._has_failed = True
            if is_sequential and result.writes:
                self._ctx = all_assigned(self._ctx, result.writes)
            await self._breathe()

    def _may_start(self) -> bool:
        """However little time there is, it is enough for one row. Raises ClaimLost."""
        self._hold.check()
        work = self._frame.work
        if self._started >= work.row_count:
            return False
        if work.mode not in ("sequential", "parallel"):
            return True  # a cursor has claimed its rows, and a shard is one row
        if self._hold.is_told_to_wait or (self._has_failed and work.failure == "fail_fast"):
            return False
        if work.seconds_max is None or self._started == 0:
            return True
        return self._clock.monotonic() - self._began < work.seconds_max

    async def _breathe(self) -> None:
        now = self._clock.monotonic()
        if now - self._breathed >= BREATH_SECONDS:
            await self._clock.sleep(0)
            self._breathed = self._clock.monotonic()


class _SharedSlot:
    """The frame's slot, used by rows that run side by side: free while all of them wait."""

    def __init__(self, hold: Hold, rows: int) -> None:
        self._hold = hold
        self._running = rows
        self._waiting = 0
        self._turn = asyncio.Lock()

    def check(self) -> None:
        self._hold.check()

    async def park(self) -> None:
        async with self._turn:
            self._waiting += 1
            await self._stop_running()

    async def unpark(self) -> None:
        async with self._turn:
            if self._running == 0:
                await self._hold.unpark()
            self._running += 1
            self._waiting -= 1

    async def leave(self) -> None:
        """No more rows. The last to leave keeps the slot, for the report."""
        async with self._turn:
            await self._stop_running()

    async def _stop_running(self) -> None:
        self._running -= 1
        if self._running == 0 and self._waiting > 0:
            await self._hold.park()


async def _all_of(serving: list[Any]) -> None:
    """Until all have ended; when one of them fails, the others are cancelled first."""
    tasks = [asyncio.create_task(each) for each in serving]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
