"""Events in, rows and lines out: no terminal, no clock."""

from typing import Any

import pytest

from noetl.cli.output import seconds_shown
from noetl.cli.progress import LoopProgress
from noetl.cli.progress_text import ERROR_CHARACTERS_MAX, TextProgress
from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionRetried,
    FanoutStarted,
    FrameAbandoned,
    FrameCommitted,
    LoopDone,
    LoopStarted,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    ShardDone,
    ShardFailed,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure
from noetl.kernel import instant
from noetl.kernel.ids import FrameId, LoopId, WorkerId
from tests.cli.told_progress import BOOM, FRAME, LOOP, NOON, STAGE, A, B, Told


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
