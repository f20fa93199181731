"""A progress that hears a story, event by event."""

from typing import Any, NamedTuple

from noetl.cli.progress import Progress, StepProgress
from noetl.cli.progress_text import line_of
from noetl.domain.events import (
    FrameCommitted,
    FrameDispatched,
    LoopStarted,
    StageEngine,
    StageOpened,
    StepEntered,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.events.values import Failure
from noetl.kernel import instant
from noetl.kernel.ids import EventId, ExecutionId, FrameId, LoopId, StageId, StepName, WorkerId

NOON = instant.parse("2026-11-15T12:00:00Z")
A, B = StepName("a"), StepName("b")
LINK = "http://here:4040"
LOOP, STAGE = LoopId("a@1"), StageId("7")
FRAME = FrameId("1")
BOOM = Failure(kind="http_status", message="503 from the shop\nand more")


class Heard(NamedTuple):
    envelope: Envelope
    event: Any


class Told:
    """A progress that is told one event after the other, each at its second."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.rows: list[StepProgress] = []
        self.story: list[Heard] = []

    def tell(
        self,
        second: float,
        event: Any,
        stage: StageId | None = None,
        frame: FrameId | None = None,
    ) -> "Told":
        envelope = Envelope(
            event_id=EventId("1"),
            event_type=event.TYPE,
            schema_name="s",
            schema_version=1,
            tenant_id="t",
            organization_id="o",
            execution_id=ExecutionId("1"),
            stream_id="execution/1",
            stream_version=1,
            aggregate_type="execution",
            aggregate_id="1",
            event_time=instant.plus(NOON, seconds=second),
            producer="test",
            stage_id=stage,
            frame_id=frame,
        )
        self.story.append(Heard(envelope, event))
        self.rows = self.progress.take(envelope, event)
        return self

    def loop(self, total: int | None) -> "Told":
        self.tell(0, StepEntered(step=A))
        self.tell(0, LoopStarted(loop_id=LOOP, step=A, mode="parallel", collection_size=total))
        return self.tell(0, StageOpened(stage_kind="loop", step=A, loop_id=LOOP), STAGE)

    def frame(self, second: float, rows: int, failed: int = 0) -> "Told":
        done = FrameCommitted(worker_id=WorkerId("w"), row_count=rows, failed_rows=failed)
        return self.tell(second, done, STAGE)

    def spark_loop(self, total: int) -> "Told":
        self.loop(total)
        policy = {"engine": "spark"}
        opened = StageOpened(stage_kind="loop", step=A, loop_id=LOOP, frame_policy=policy)
        return self.tell(0, opened, STAGE)

    def job(self, second: float, ui_url: str | None = LINK) -> "Told":
        event = StageEngine(engine="spark", session_id="s", tag="t", slots=2, ui_url=ui_url)
        return self.tell(second, event, STAGE)

    def out(self, second: float, frame: str, worker: str = "local") -> "Told":
        until = instant.plus(NOON, seconds=second + 30)
        event = FrameDispatched(ordinal=0, worker_id=WorkerId(worker), lease_until=until)
        return self.tell(second, event, STAGE, FrameId(frame))

    @property
    def news(self) -> list[str]:
        told = list(self.progress.news)
        self.progress.news.clear()
        return told

    @property
    def line(self) -> str:
        (row,) = self.rows
        return line_of(row, self.progress.now)
