"""A frame from its claim to its report: the rows of a loop through the step's pipeline."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from noetl.domain.execution.names import all_assigned
from noetl.domain.playbook.model import Playbook
from noetl.domain.work import FrameReport, FrameWork, RowOutcome
from noetl.kernel import canonical_json
from noetl.kernel.errors import InvariantBroken
from noetl.kernel.ids import WorkerId
from noetl.pipeline.job import Hold, RowResult, RowStatus
from noetl.ports.clock import Clock
from noetl.ports.frame_journal import FrameJournal
from noetl.results.store import ResultStore
from noetl.runtime.frames_cursor import CursorRows
from noetl.runtime.frames_jobs import FrameJobs
from noetl.runtime.frames_journal import JournalBuffer, RowJournal
from noetl.runtime.frames_keeping import FrameHold, KeptJournal
from noetl.runtime.frames_report import (
    Output,
    Worked,
    report,
    row_outcomes,
    staged,
    whole_frame_outcomes,
)
from noetl.runtime.frames_rows import Collections
from noetl.runtime.frames_slot import SharedSlot
from noetl.runtime.worker_commands import Pipelines
from noetl.runtime.worker_patience import insisted
from noetl.templates.layered import plain_result

BREATH_SECONDS = 0.02
"""Rows that never wait for anything let heartbeats and others have their turn this often."""


@dataclass(frozen=True, slots=True)
class FrameEnd:
    report: FrameReport
    journal: KeptJournal | None = None  # to be closed when the report is recorded, or is not


class Frames:
    def __init__(
        self,
        pipelines: Pipelines,
        results: ResultStore,
        journal: FrameJournal,
        clock: Clock,
        cursors: CursorRows | None = None,
    ) -> None:
        self._cursors = cursors
        self._pipelines = pipelines
        self._results = results
        self._journal = journal
        self._clock = clock
        self._collections = Collections(results, clock)

    async def run(
        self, work: FrameWork, playbook: Playbook, hold: FrameHold, worker: WorkerId
    ) -> FrameEnd:
        """Raises ClaimLost, PayloadError when the rows are not there, and what claiming raises."""
        began = self._clock.monotonic()
        if work.mode == "cursor" and work.rows is None:
            work = await self._claimed(work, playbook, hold, worker)
            if work.row_count == 0:
                took = round(1000 * (self._clock.monotonic() - began))
                nothing = report(work, worker, Worked([], [], took), Output(None, ()))
                return FrameEnd(nothing)
        rows = await self._collections.rows(work, hold.check)
        kept = await self._collections.kept(work, hold.check)
        buffer = JournalBuffer(self._journal, work, hold, self._clock)
        try:
            frame = FrameJobs(work, playbook, rows, await buffer.earlier())
            passing = _Pass(frame, self._pipelines, buffer, hold, self._clock)
            is_whole = frame.loop.frame.process == "frame"
            results = await (passing.whole() if is_whole else passing.rows(kept))
            await buffer.end(_failed_rows(work, results))
            outcomes = (
                whole_frame_outcomes(work, results[0])
                if is_whole
                else row_outcomes(work.first_index, results)
            )
            output = await insisted(
                lambda: staged(outcomes, work, self._results), hold.check, self._clock
            )
        except asyncio.CancelledError:
            await buffer.leave(in_time=hold.is_told_to_wait)
            raise
        except Exception:
            await buffer.leave(in_time=True)
            raise
        worked = Worked(outcomes, results, round(1000 * (self._clock.monotonic() - began)))
        end = report(work, worker, worked, output)
        # Whoever works on the failed rows, or on those that this holder left, will read it.
        has_rest = end.row_count < work.row_count and (work.attempt > 1 or bool(work.after))
        is_needed = end.failed_rows > 0 or has_rest
        return FrameEnd(end, KeptJournal(self._journal, buffer, work, hold, is_needed=is_needed))

    async def _claimed(
        self, work: FrameWork, playbook: Playbook, hold: FrameHold, worker: WorkerId
    ) -> FrameWork:
        if self._cursors is None:
            raise InvariantBroken("a frame of a cursor was given to a worker that has no drivers")
        return await self._cursors.found(work, playbook, hold, worker)


class _Pass:
    """One pass over the rows: as many at once as the frame allows, started in order."""

    def __init__(
        self,
        frame: FrameJobs,
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
        self._bytes = 0
        self._kept: Mapping[int, RowOutcome] = {}
        # A cursor has claimed its rows, and a shard is one row: neither stops half-way.
        self._is_window = frame.work.mode in ("sequential", "parallel")
        self._ctx = frame.work.facts.ctx

    async def whole(self) -> list[RowResult]:
        self._hold.check()
        index = self._frame.work.first_index
        journal = RowJournal(self._buffer, index)
        result = await self._pipelines.run(self._frame.whole_job(), journal, self._hold)
        self._buffer.note(index, result.calls)
        return [self._frame.told_once(index, result)]

    async def rows(self, kept: Mapping[int, RowOutcome]) -> list[RowResult]:
        """Those that were started; all of them have ended. Kept ones are not run again."""
        self._kept = kept
        work = self._frame.work
        at_once = 1 if work.mode == "sequential" else min(work.row_concurrency, work.row_count)
        if at_once <= 1:
            await self._serve(self._hold)
        else:
            shared = SharedSlot(self._hold, at_once)
            await _all_of([self._serve_sharing(shared) for _ in range(at_once)])
        return [result for result in self._results if result is not None]

    async def _serve_sharing(self, shared: SharedSlot) -> None:
        await self._serve(shared)
        await shared.leave()

    async def _serve(self, hold: Hold) -> None:
        work = self._frame.work
        while self._may_start():
            row = self._started
            self._started += 1
            result = self._results[row] = await self._run(work.first_index + row, hold)
            if result.status == "failed":
                self._has_failed = True
            if work.mode == "sequential" and result.writes:
                self._ctx = all_assigned(self._ctx, result.writes)
            if work.bytes_max is not None and self._is_window:
                self._bytes += len(canonical_json.encode(plain_result(result.value)))
            await self._breathe()

    async def _run(self, index: int, hold: Hold) -> RowResult:
        kept = self._kept.get(index)
        if kept is not None:
            return _as_result(kept)
        job = self._frame.job(index, self._ctx)
        result = await self._pipelines.run(job, RowJournal(self._buffer, index), hold)
        if result.calls:
            self._buffer.note(index, result.calls)
        return self._frame.told_once(index, result)

    def _may_start(self) -> bool:
        """However little time and space there is, one row may start. Raises ClaimLost."""
        self._hold.check()
        work = self._frame.work
        if self._started >= work.row_count:
            return False
        if not self._is_window:
            return True
        if self._hold.is_told_to_wait or (self._has_failed and work.failure == "fail_fast"):
            return False
        if self._started == 0:
            return True
        if work.bytes_max is not None and self._bytes >= work.bytes_max:
            return False
        is_timed = work.seconds_max is not None
        return not is_timed or self._clock.monotonic() - self._began < (work.seconds_max or 0)

    async def _breathe(self) -> None:
        now = self._clock.monotonic()
        if now - self._breathed >= BREATH_SECONDS:
            await self._clock.sleep(0)
            self._breathed = self._clock.monotonic()


def _as_result(kept: RowOutcome) -> RowResult:
    status: RowStatus = "break" if kept.status == "break" else "ok"
    return RowResult(status=status, value=kept.value, writes=kept.writes)


def _failed_rows(work: FrameWork, results: Sequence[RowResult]) -> list[int]:
    """By index; a whole frame goes by its first."""
    return [
        index for index, result in enumerate(results, work.first_index) if result.status == "failed"
    ]


async def _all_of(serving: list[Any]) -> None:
    """Until all have ended; when one of them fails, the others are cancelled first."""
    tasks = [asyncio.create_task(each) for each in serving]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
