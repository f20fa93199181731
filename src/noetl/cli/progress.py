"""An execution as people follow it: steps that begin and end, loops that fill. Events in, rows out.

Knows neither a terminal nor a clock: times are those of the events.
"""

from typing import Any, Literal

import msgspec

from noetl.cli.progress_engines import EngineNews
from noetl.cli.progress_pace import Pace
from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    FanoutStarted,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    LoopDone,
    LoopStarted,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageEngine,
    StageOpened,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import Envelope
from noetl.kernel import instant
from noetl.kernel.ids import FrameId, LoopId, StageId, StepName, loop_id
from noetl.kernel.instant import Instant

Outcome = Literal["running", "done", "failed", "handled", "skipped", "cancelled"]


class LoopProgress(msgspec.Struct, kw_only=True):
    """Rows that are done, failed ones among them; a cursor does not know its total."""

    total: int | None
    done: int = 0
    failed: int = 0
    frames: set[FrameId] = msgspec.field(default_factory=set)  # handed out and not back
    served_by: str | None = None  # an engine that has the rows, or should have them

    @property
    def fraction(self) -> float | None:
        return None if not self.total else min(1.0, self.done / self.total)


class StepProgress(msgspec.Struct, kw_only=True):
    """One visit of a step."""

    step: StepName
    visit: int
    began_at: Instant
    ended_at: Instant | None = None
    outcome: Outcome = "running"
    loop: LoopProgress | None = None
    pace: Pace | None = None
    error: str | None = None

    @property
    def name(self) -> str:
        return self.step if self.visit == 1 else f"{self.step} (visit {self.visit})"

    def seconds(self, now: Instant) -> float:
        return max(0.0, instant.seconds_between(self.began_at, self.ended_at or now))

    def rows_per_second(self, now: Instant) -> float | None:
        if self.loop is None or self.pace is None:
            return None
        return self.pace.rows_per_second(self.ended_at or now, self.loop.done)

    def seconds_left(self, now: Instant) -> float | None:
        """As fast as of late; None while nothing is known."""
        rate = self.rows_per_second(now)
        if self.loop is None or self.loop.total is None or not rate:
            return None
        return max(0, self.loop.total - self.loop.done) / rate


class Progress:
    """Takes the events of one execution in their order."""

    def __init__(self) -> None:
        self.open: dict[
            LoopId, StepProgress
        ] = {}  # a visit of a step is named as its loop would be
        self.status = "PENDING"
        self.events = 0
        self.now = Instant("")
        self.is_over = False
        self.news: list[str] = []  # what is to be said once
        self._engines = EngineNews()
        self._stages: dict[StageId, LoopId] = {}

    def take(self, envelope: Envelope, event: Any) -> list[StepProgress]:
        """What changed in a way that people want a line for: rows that began, and rows that ended.

        The rest shows in `open`.
        """
        self.events += 1
        self.now = max(self.now, envelope.event_time)
        news = self._engines.take(envelope, event)
        if news is not None:
            self.news.append(news)
        match event:
            case StepEntered() | ExecutionRetried():
                return self._begin(event.step, event.visit)
            case StepExited() | StepSkipped():
                return self._end(event)
            case LoopStarted() | FanoutStarted() | StageOpened() | LoopDone():
                self._loop(envelope, event)
            case FrameCommitted() | ShardDone() | ShardFailed():
                self._frames(envelope, event)
                return self._rows(envelope, event)
            case (
                FrameDispatched()
                | ShardEnqueued()
                | FrameFailed()
                | FrameAbandoned()
                | StageEngine()
            ):
                self._frames(envelope, event)
            case _:
                return self._execution(event)
        return []

    def forget_pace(self, now: Instant) -> None:
        """What was taken so far happened before we came."""
        self.news.clear()
        for row in self.open.values():
            if row.loop is not None:
                row.pace = Pace(now, row.loop.done)

    def _begin(self, step: StepName, visit: int) -> list[StepProgress]:
        self.status, self.is_over = "RUNNING", False
        row = StepProgress(step=step, visit=visit, began_at=self.now)
        is_new = loop_id(step, visit) not in self.open
        self.open.setdefault(loop_id(step, visit), row)
        return [row] if is_new else []

    def _end(self, event: StepExited | StepSkipped) -> list[StepProgress]:
        row = self.open.pop(loop_id(event.step, event.visit), None)
        if row is None:
            row = StepProgress(step=event.step, visit=event.visit, began_at=self.now)
        row.ended_at = self.now
        if isinstance(event, StepSkipped):
            row.outcome = "skipped"
        elif event.status == "FAILED":
            row.outcome = "handled" if event.handled else "failed"
            row.error = None if event.error is None else event.error.message
        else:
            row.outcome = "done"
        return [row]

    def _loop(
        self, envelope: Envelope, event: LoopStarted | FanoutStarted | StageOpened | LoopDone
    ) -> None:
        key = loop_id(event.step, event.visit)  # a retry of the visit shows as the same step
        row = self.open.get(key)
        if isinstance(event, StageOpened):
            if envelope.stage_id is not None:
                self._stages[envelope.stage_id] = key
                self._frames(envelope, event)
        elif row is None:
            return
        elif isinstance(event, LoopDone):
            done = event.stats.succeeded + event.stats.failed
            row.loop = LoopProgress(total=event.stats.total, done=done, failed=event.stats.failed)
        elif isinstance(event, FanoutStarted):
            row.loop, row.pace = LoopProgress(total=event.total_shards), Pace(self.now)
        else:
            row.loop, row.pace = LoopProgress(total=event.collection_size), Pace(self.now)

    def _frames(self, envelope: Envelope, event: Any) -> None:
        """Which frames are out, and on whom."""
        stage_id, frame = envelope.stage_id, envelope.frame_id
        row = self.open.get(self._stages.get(stage_id or StageId(""), LoopId("")))
        if stage_id is None or row is None or row.loop is None:
            return
        service = self._engines.stages.get(stage_id)
        row.loop.served_by = None if service is None else service.words
        if frame is not None and isinstance(event, FrameDispatched | ShardEnqueued):
            row.loop.frames.add(frame)
        elif frame is not None:
            row.loop.frames.discard(frame)

    def _rows(
        self, envelope: Envelope, event: FrameCommitted | ShardDone | ShardFailed
    ) -> list[StepProgress]:
        loop = LoopId("") if isinstance(event, FrameCommitted) else event.loop_id
        row = self.open.get(self._stages.get(envelope.stage_id or StageId(""), loop))
        if row is None or row.loop is None:
            return []
        if isinstance(event, FrameCommitted):
            row.loop.done += event.row_count
            row.loop.failed += event.failed_rows
        elif isinstance(event, ShardDone) or event.final:
            row.loop.done += 1
            row.loop.failed += isinstance(event, ShardFailed)
        if row.pace is not None:
            row.pace.hear(self.now, row.loop.done)
        return [row]

    def _execution(self, event: Any) -> list[StepProgress]:
        match event:
            case PlaybookInitialized() | ExecutionResumed():
                self.status = "RUNNING"
            case ExecutionPaused():
                self.status = "PAUSED"
            case PlaybookCompleted():
                return self._over("COMPLETED", "done")
            case PlaybookFailed():
                return self._over("FAILED", "cancelled")
            case ExecutionCancelled():
                return self._over("CANCELLED", "cancelled")
        return []

    def _over(self, status: str, outcome: Outcome) -> list[StepProgress]:
        """What is still open ends with the execution."""
        self.status, self.is_over = status, True
        ended = list(self.open.values())
        self.open.clear()
        for row in ended:
            row.ended_at, row.outcome = self.now, outcome
        return ended
