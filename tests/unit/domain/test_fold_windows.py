"""Which rows of a loop are out, which came back, and what they left behind."""

import copy
from typing import Any

import pytest

from noetl.domain.events import FrameFailed, StageClosed
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import FrameOutput, LoopWork, Window
from noetl.domain.execution.windows import window_as_cursor
from noetl.kernel.ids import FrameId
from noetl.testing.given import Placed, Story, at, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    FAILURE,
    FRAME,
    LOOP,
    STAGE,
    STEP,
    abandoned,
    committed,
    dispatched,
    frame_started,
    in_frame,
    loop_done,
    loop_started,
    reference,
    stage_opened,
)

SECOND, THIRD = FrameId("f2"), FrameId("f3")


def loop_of(size: int, **fields: Any) -> Story:
    return given(loop_started(collection_size=size, **fields), stage_opened())


def work(story: Story) -> LoopWork:
    return story.state.loop_work[LOOP]


def out(window: Window, frame: FrameId = FRAME, ordinal: int = 0, **fields: Any) -> Placed:
    return dispatched(frame=frame, ordinal=ordinal, cursor=window_as_cursor(window), **fields)


def test_a_loop_that_began_knows_its_items_and_its_bounds() -> None:
    started = loop_started(
        visit=2, mode="sequential", collection_size=2, collection=["a", {"b": 1}],
        collection_ref=reference("items"),
    )  # fmt: skip
    story = given(started, stage_opened(frame_policy={"max_rows": 5, "failure": "continue"}))
    assert work(story) == LoopWork(
        loop_id=LOOP,
        step=STEP,
        visit=2,
        mode="sequential",
        total=2,
        collection=["a", {"b": 1}],
        collection_ref=reference("items"),
        stage_id=STAGE,
        policy={"max_rows": 5, "failure": "continue"},
    )


def test_a_loop_that_began_twice_is_one() -> None:
    story = loop_of(5).when(out(Window(0, 5)), loop_started(collection_size=9))
    assert work(story).total == 5
    assert work(story).out == {FRAME: Window(0, 5)}


def test_rows_that_were_handed_out_are_out() -> None:
    story = loop_of(10).when(out(Window(0, 4)), out(Window(4, 3), SECOND, 1))
    assert work(story).out == {FRAME: Window(0, 4), SECOND: Window(4, 3)}
    assert (work(story).next_index, work(story).next_ordinal) == (7, 2)
    assert work(story).outputs == []


def test_what_comes_next_never_goes_back() -> None:
    story = loop_of(10).when(out(Window(4, 3), SECOND, 1), out(Window(0, 4)))
    assert (work(story).next_index, work(story).next_ordinal) == (7, 2)


def test_beside_a_reference_only_the_first_frame_keeps_a_preview() -> None:
    story = loop_of(10).when(out(Window(0, 4)))
    story.when(committed(row_count=4, output_ref=reference("rows"), outcomes=[{"value": 1}]))
    assert work(story).outputs[0].outcomes == [{"value": 1}]


def test_rows_that_came_back_leave_their_output() -> None:
    story = loop_of(10).when(out(Window(0, 4)), out(Window(4, 4), SECOND, 1))

    story.when(
        committed(
            frame=SECOND,
            row_count=4,
            failed_rows=2,
            broken_rows=1,
            output_ref=reference("rows"),
            outcomes=[{"value": 1}],
            writes={"page": 2},
            row_error=FAILURE,
            metrics={"duration_ms": 12, "tool_ms": 9},
        )
    )

    assert work(story).out == {FRAME: Window(0, 4)}
    assert work(story).returned == []
    assert work(story).outputs == [
        FrameOutput(
            window=Window(4, 4),
            output_ref=reference("rows"),
            writes={"page": 2},
            duration_ms=12,
            rows_failed=2,
            rows_broken=1,
            ordinal=1,
            frames=(SECOND,),
        )
    ]
    assert (work(story).rows_failed, work(story).rows_broken) == (2, 1)
    assert work(story).row_error == FAILURE


def test_failed_and_broken_rows_add_up_and_the_first_error_is_told() -> None:
    later = Failure(kind="http", message="later")
    story = loop_of(10).when(out(Window(0, 4)), out(Window(4, 4), SECOND, 1))
    story.when(committed(row_count=4, failed_rows=1, broken_rows=2, row_error=FAILURE))
    story.when(committed(frame=SECOND, row_count=4, failed_rows=2, broken_rows=1, row_error=later))
    assert (work(story).rows_failed, work(story).rows_broken) == (3, 3)
    assert work(story).row_error == FAILURE


@pytest.mark.parametrize("metrics", [{}, {"duration_ms": "quick"}, {"duration_ms": None}])
def test_a_frame_that_did_not_say_how_long_it_took_took_no_time(metrics: dict[str, Any]) -> None:
    story = loop_of(4).when(out(Window(0, 4)), committed(row_count=4, metrics=metrics))
    assert work(story).outputs[0].duration_ms == 0


def test_a_frame_that_commits_its_first_rows_returns_the_rest() -> None:
    story = loop_of(10).when(out(Window(2, 6)), committed(row_count=2))
    assert work(story).outputs[0].window == Window(2, 2)
    assert work(story).returned == [Window(4, 4)]
    assert work(story).next_index == 8


def test_a_frame_that_commits_no_row_returns_them_all() -> None:
    story = loop_of(10).when(out(Window(2, 6)), committed(row_count=0))
    assert work(story).outputs[0].window == Window(2, 0)
    assert work(story).returned == [Window(2, 6)]


def test_a_frame_cannot_bring_more_rows_than_it_took() -> None:
    story = loop_of(10).when(out(Window(2, 6)), committed(row_count=9))
    assert work(story).outputs[0].window == Window(2, 6)
    assert work(story).returned == []


def test_returned_rows_are_handed_out_again_in_a_frame_of_their_own() -> None:
    story = loop_of(10).when(
        out(Window(0, 6)), committed(row_count=2), out(Window(6, 4), SECOND, 1)
    )
    assert work(story).returned == [Window(2, 4)]

    story.when(out(Window(2, 4), THIRD, 2))

    assert work(story).returned == []
    assert work(story).out == {SECOND: Window(6, 4), THIRD: Window(2, 4)}
    assert (work(story).next_index, work(story).next_ordinal) == (10, 3)


def test_an_abandoned_frame_keeps_its_rows_until_it_is_dispatched_again() -> None:
    story = loop_of(10).when(out(Window(0, 6)), frame_started(), abandoned(ANNA))
    assert work(story).out == {FRAME: Window(0, 6)}
    assert work(story).returned == []

    story.when(out(Window(0, 6), worker=BERT, attempt=2))
    assert work(story).out == {FRAME: Window(0, 6)}
    assert (work(story).next_index, work(story).next_ordinal) == (6, 1)

    story.when(committed(BERT, row_count=6))
    assert work(story).out == {}
    assert [output.window for output in work(story).outputs] == [Window(0, 6)]


def test_a_frame_that_failed_takes_its_rows_along() -> None:
    later = Failure(kind="http", message="later")
    story = loop_of(10).when(out(Window(0, 4)), out(Window(4, 4), SECOND, 1))
    story.when(in_frame(FrameFailed(error=FAILURE)), in_frame(FrameFailed(error=later), SECOND))
    assert work(story).out == {}
    assert work(story).returned == []
    assert work(story).outputs == []
    assert work(story).frame_error == FAILURE
    assert work(story).row_error is None


def test_a_frame_comes_back_once() -> None:
    story = loop_of(10).when(out(Window(0, 4)), committed(row_count=4))
    before = copy.deepcopy(work(story))
    story.when(committed(row_count=4, failed_rows=4), in_frame(FrameFailed(error=FAILURE)))
    assert work(story) == before
    story.then("execution", unmatched_events=2)


@pytest.mark.parametrize("cursor", [{}, {"first": 0}, {"first": "0", "rows": 4}, {"from": 0}])
def test_a_frame_without_a_window_has_no_rows_of_the_collection(cursor: dict[str, Any]) -> None:
    story = loop_of(10).when(dispatched(cursor=cursor))
    assert (work(story).out, work(story).next_index) == ({}, 0)
    story.when(committed(row_count=4))
    assert work(story).outputs == []


def test_what_a_row_wrote_is_seen_by_the_next_row_of_a_sequence() -> None:
    story = loop_of(2, mode="sequential").when(out(Window(0, 1)))
    held = story.state.ctx

    story.when(committed(row_count=1, writes={"order.total": 5}))

    assert story.state.ctx == {"order": {"total": 5}}
    assert held == {}


@pytest.mark.parametrize("mode", ["parallel", "fanout", "cursor"])
def test_what_rows_side_by_side_wrote_is_seen_when_the_loop_is_done(mode: str) -> None:
    story = loop_of(2, mode=mode).when(out(Window(0, 2)))
    story.when(committed(row_count=2, writes={"order.total": 5}))
    assert story.state.ctx == {}
    assert work(story).outputs[0].writes == {"order.total": 5}

    story.when(loop_done(2, writes={"order.total": 5}))

    assert story.state.ctx == {"order": {"total": 5}}


def test_a_loop_that_is_done_keeps_nothing_of_its_rows() -> None:
    story = loop_of(2).when(out(Window(0, 2)), committed(row_count=2)).when(loop_done(2))
    assert story.state.loop_work == {}


def test_a_frame_that_outlives_its_loop_or_stage_still_ends() -> None:
    story = loop_of(4, mode="sequential").when(out(Window(0, 2)), out(Window(2, 2), SECOND, 1))
    story.when(loop_done(4), committed(row_count=2, writes={"page": 1}))
    story.when(at(StageClosed(status="CLOSED"), stage_id=STAGE))
    story.when(in_frame(FrameFailed(error=FAILURE), SECOND))
    assert story.state.frames == {}
    assert story.state.ctx == {}
    story.then("execution", unmatched_events=0)
