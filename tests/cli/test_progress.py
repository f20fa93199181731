"""Events in, rows and lines out: no terminal, no clock."""

from typing import Any

import pytest

from noetl.cli.output import seconds_shown
from noetl.cli.progress import LoopProgress, Progress, StepProgress
from noetl.cli.progress_live import fitted
from noetl.cli.progress_text import ERROR_CHARACTERS_MAX, TextProgress, line_of
from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionRetried,
    FanoutStarted,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    LoopDone,
    LoopStarted,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    ShardDone,
    ShardFailed,
    StageClosed,
    StageEngine,
    StageOpened,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure
from noetl.kernel import instant
from noetl.kernel.ids import EventId, ExecutionId, FrameId, LoopId, StageId, StepName, WorkerId

NOON = instant.parse("2026-11-15T12:00:00Z")
A, B = StepName("a"), StepName("b")
LINK = "http://here:4040"
LOOP, STAGE = LoopId("a@1"), StageId("7")
FRAME = FrameId("1")
BOOM = Failure(kind="http_status", message="503 from the shop\nand more")


class Told:
    """A progress that is told one event after the other, each at its second."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.rows: list[StepProgress] = []

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


def test_a_step_is_open_from_its_entry_to_its_exit() -> None:
    told = Told().tell(0, PlaybookInitialized(path="p", playbook_digest="d"))
    told.tell(1, StepEntered(step=A))
    assert [row.name for row in told.progress.open.values()] == ["a"]
    told.tell(3.5, StepExited(step=A, status="COMPLETED"))
    assert told.line == "✓ a  2.50 s"
    assert told.progress.open == {}
    assert not told.tell(4, PlaybookCompleted(step=A)).rows
    assert (told.progress.status, told.progress.events) == ("COMPLETED", 4)


def test_visits_of_a_step_are_told_apart() -> None:
    told = Told().tell(0, StepEntered(step=A)).tell(1, StepEntered(step=A, visit=2))
    told.tell(2, StepExited(step=A, status="COMPLETED", visit=2))
    assert told.line == "✓ a (visit 2)  1.00 s"
    assert [row.visit for row in told.progress.open.values()] == [1]


def test_a_failed_step_says_why_on_one_line() -> None:
    told = Told().tell(0, StepEntered(step=A))
    told.tell(1, StepExited(step=A, status="FAILED", error=BOOM))
    assert told.line == "✗ a  1.00 s  503 from the shop"


def test_a_failure_that_an_arc_took_up_is_no_failure_of_the_whole() -> None:
    told = Told().tell(0, StepEntered(step=A))
    told.tell(1, StepExited(step=A, status="FAILED", error=BOOM, handled=True))
    assert told.line.startswith("! a")


def test_a_long_message_is_cut() -> None:
    told = Told().tell(0, StepEntered(step=A))
    error = Failure(kind="k", message="x" * 10_000)
    told.tell(1, StepExited(step=A, status="FAILED", error=error))
    assert len(told.line) < ERROR_CHARACTERS_MAX + 30


def test_a_message_cannot_move_the_cursor() -> None:
    told = Told().tell(0, StepEntered(step=A))
    told.tell(1, StepExited(step=A, status="FAILED", error=Failure(kind="k", message="\x1b[2Jhi")))
    assert "\x1b" not in told.line


def test_a_skipped_step_needs_no_entry() -> None:
    assert Told().tell(0, StepSkipped(step=A)).line == "- a  skipped"


def test_a_loop_counts_rows_pace_and_what_is_left() -> None:
    told = Told().loop(1_000).frame(2, 200, 3).frame(4, 200)
    (row,) = told.progress.open.values()
    assert row.loop is not None
    assert (row.loop.done, row.loop.failed, row.loop.fraction) == (400, 3, 0.4)
    assert row.rows_per_second(told.progress.now) == 100
    assert row.seconds_left(told.progress.now) == 6
    assert told.line == "… a  400 of 1,000 rows, 3 failed  100 rows/s  6.00 s left"


def test_the_pace_is_that_of_late() -> None:
    told = Told().loop(10_000)
    for second in range(1, 101):
        told.frame(second, 1 if second <= 50 else 100)
    (row,) = told.progress.open.values()
    assert row.rows_per_second(told.progress.now) == 100


def test_slow_rows_get_a_digit_more() -> None:
    assert Told().loop(9).frame(5, 2).line.startswith("… a  2 of 9 rows  0.4 rows/s")


def test_frames_in_flight_are_counted_until_they_are_back() -> None:
    told = Told().loop(100).out(0, "1").out(0, "2").out(0, "3")
    told.tell(1, FrameAbandoned(previous_owner=WorkerId("w"), previous_attempts=1), STAGE, FRAME)
    done = FrameCommitted(worker_id=WorkerId("w"), row_count=10)
    told.tell(2, done, STAGE, FrameId("2"))
    assert told.line.endswith("5.0 rows/s  18.0 s left  1 frame out")


def test_what_was_before_we_came_counts_as_rows_and_not_for_the_pace() -> None:
    told = Told().loop(1_000).frame(2, 500)
    told.progress.forget_pace(instant.plus(NOON, seconds=3600))
    assert told.frame(3610, 100).line == "… a  600 of 1,000 rows  10 rows/s  40.0 s left"


def test_the_engine_and_its_link_are_told_once() -> None:
    told = Told().spark_loop(100).out(1, "1")
    (row,) = told.progress.open.values()
    assert row.loop is not None
    assert (row.loop.served_by, told.news) == ("spark starts", [])
    told.job(2).out(2, "2")
    assert row.loop.served_by == "spark starts"
    assert told.news == [f"a runs on spark, 2 slots: {LINK}"]
    told.out(3, "3", "spark/7/0")
    assert row.loop.served_by == "spark, 2 slots"
    told.tell(4, StageClosed(status="COMPLETED"), STAGE)
    assert told.spark_loop(100).job(5).news == []


def test_slots_that_are_lost_and_come_back_are_told() -> None:
    told = Told().spark_loop(100).job(1, None).out(2, "1", "spark/7/0")
    assert told.news == ["a runs on spark, 2 slots"]
    told.out(3, "2").out(4, "3")
    (row,) = told.progress.open.values()
    assert row.loop is not None
    assert row.loop.served_by == "local"
    assert told.news == ["a: no slots of spark at work; local workers go on"]
    assert told.job(5, None).news == ["a runs on spark again, after its slots were lost, 2 slots"]


@pytest.mark.parametrize(
    ("columns", "kept", "bar"),
    [(90, 4, 30), (43, 4, 8), (40, 3, 11), (20, 1, 9), (9, 0, 9), (5, 0, 0)],
)
def test_a_line_has_as_much_as_there_is_room_for(columns: int, kept: int, bar: int) -> None:
    cells = ["100 rows/s", "", "6 s left", "2 frames", "1.0 s"]
    shown, width = fitted(cells, columns)
    assert (len(shown), width) == (kept, bar)
    assert sum(len(cell) + 1 for cell in shown) + width <= columns


def test_the_end_of_a_loop_says_what_the_log_says() -> None:
    told = Told().loop(10).frame(1, 4)
    stats = LoopStats(total=10, succeeded=8, failed=2)
    told.tell(2, LoopDone(loop_id=LOOP, step=A, status="partial", stats=stats))
    told.tell(2, StepExited(step=A, status="COMPLETED"))
    assert told.line == "✓ a  10 rows, 2 failed  2.00 s"


def test_a_cursor_has_no_total_and_nothing_to_be_left() -> None:
    told = Told().loop(None).frame(2, 50)
    assert told.line == "… a  50 rows  25 rows/s"


def test_shards_count_when_no_retry_is_left() -> None:
    told = Told().tell(0, StepEntered(step=A))
    told.tell(0, LoopStarted(loop_id=LOOP, step=A, mode="fanout", collection_size=2))
    told.tell(0, FanoutStarted(loop_id=LOOP, step=A, total_shards=2))
    told.tell(1, ShardFailed(loop_id=LOOP, shard_id="0", error=BOOM, final=False))
    told.tell(1, ShardDone(loop_id=LOOP, shard_id="1"))
    told.tell(2, ShardFailed(loop_id=LOOP, shard_id="0", error=BOOM, final=True))
    assert told.line == "… a  2 rows, 1 failed  1.0 rows/s  0.00 s left"


def test_frames_of_a_stage_that_nobody_knows_change_nothing() -> None:
    told = Told().tell(0, StepEntered(step=A))
    assert told.frame(1, 5).rows == []


@pytest.mark.parametrize("end", [ExecutionCancelled(), PlaybookFailed(error=BOOM)])
def test_what_is_open_ends_with_the_execution(end: Any) -> None:
    told = Told().tell(0, StepEntered(step=A)).tell(0, StepEntered(step=B)).tell(2, end)
    assert [row.outcome for row in told.rows] == ["cancelled", "cancelled"]
    assert told.progress.is_over


def test_a_retry_opens_the_step_again() -> None:
    told = Told().tell(0, StepEntered(step=A))
    told.tell(1, StepExited(step=A, status="FAILED", error=BOOM))
    told.tell(1, PlaybookFailed(step=A, error=BOOM))
    told.tell(9, ExecutionRetried(step=A, visit=1, attempt=2))
    assert not told.progress.is_over
    told.tell(9, StepEntered(step=A))
    assert told.tell(10, StepExited(step=A, status="COMPLETED")).line == "✓ a  1.00 s"


def test_a_loop_that_is_retried_shows_as_the_same_step() -> None:
    told = Told().tell(0, ExecutionRetried(step=A, visit=1, attempt=2))
    again = LoopStarted(
        loop_id=LoopId("a@1.2"), step=A, mode="parallel", collection_size=9, attempt=2
    )
    (row,) = told.tell(1, again).progress.open.values()
    assert row.loop == LoopProgress(total=9)


def test_a_pause_is_a_status() -> None:
    assert Told().tell(0, ExecutionPaused()).progress.status == "PAUSED"


def test_lines_come_at_the_end_of_steps_and_now_and_then_of_long_loops() -> None:
    text, told = TextProgress(), Told().loop(100)
    said = []
    for second in range(1, 26):
        told.frame(second, 2)
        said += text.lines(told.rows, told.progress.now)
    assert len(said) == 2
    assert said[0].startswith("… a  20 of 100 rows")
    told.tell(30, StepExited(step=A, status="COMPLETED"))
    assert text.lines(told.rows, told.progress.now) == ["✓ a  50 of 100 rows  30.0 s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (9.994, "9.99 s"),
        (59.9, "59.9 s"),
        (245, "4 min 05 s"),
        (11_220, "3 h 07 min"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert seconds_shown(seconds) == text
