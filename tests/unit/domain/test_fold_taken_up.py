"""A loop that failed is tried again: rows that ended well stay, all others go out once more."""

from noetl.domain.events import FrameFailed, LoopStarted, StageOpened, StepEntered
from noetl.domain.execution.state import LoopWork, Unfinished, Window
from noetl.kernel.ids import FrameId, LoopId, StageId
from noetl.testing.given import Placed, Story, at, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    FAILURE,
    STEP,
    abandoned,
    committed,
    dispatched,
    in_frame,
    loop_done,
    loop_started,
    reference,
    stage_opened,
)

F1, F2, F3, F4 = (FrameId(f"f{number}") for number in range(1, 5))
AGAIN, NEXT_STAGE = LoopId("again"), StageId("s2")


def out(frame: FrameId, first: int, rows: int, ordinal: int = 0) -> Placed:
    return dispatched(frame=frame, ordinal=ordinal, cursor={"first": first, "rows": rows})


def failed_loop(*happenings: Placed) -> Story:
    story = given(loop_started(collection_size=40), stage_opened(), *happenings)
    return story.when(loop_done(40, status="failed", error=FAILURE))


def taken_up(story: Story) -> LoopWork:
    story.when(
        loop_started(AGAIN, collection_size=40, attempt=2),
        at(StageOpened(stage_kind="loop", step=STEP, loop_id=AGAIN), stage_id=NEXT_STAGE),
    )
    return story.state.loop_work[AGAIN]


def test_outputs_without_failed_rows_stay_and_the_rest_goes_out_again() -> None:
    story = failed_loop(
        out(F1, 0, 10),
        out(F2, 10, 10, 1),
        out(F3, 20, 10, 2),
        committed(frame=F1, row_count=10, broken_rows=3, output_ref=reference("one")),
        committed(frame=F2, row_count=6, failed_rows=2, output_ref=reference("two")),
        in_frame(FrameFailed(error=FAILURE), F3),
    )
    work = taken_up(story)

    assert [output.window for output in work.outputs] == [Window(0, 10)]
    assert work.unfinished == [
        Unfinished(window=Window(20, 10), frames=(F3,), ordinal=2),
        Unfinished(
            window=Window(10, 6), frames=(F2,), ordinal=1, output_ref=reference("two"), outcomes=[]
        ),
    ]
    assert work.returned == [Window(16, 4)]  # of these no row had begun
    assert (work.next_index, work.next_ordinal) == (30, 3)
    assert (work.rows_failed, work.rows_broken) == (0, 3)
    assert (work.row_error, work.frame_error) == (None, None)
    assert story.state.loops[AGAIN].done == 10
    assert story.state.kept_loops == {}


def test_rows_that_go_out_again_know_who_had_them() -> None:
    story = failed_loop(out(F1, 0, 10), in_frame(FrameFailed(error=FAILURE), F1))
    work = taken_up(story)
    again = at(out(F2, 0, 10, 0).event, stage_id=NEXT_STAGE, frame_id=F2)

    story.when(again)

    assert work.unfinished == []
    assert work.earlier == {F2: Unfinished(window=Window(0, 10), frames=(F1,), ordinal=0)}
    story.when(at(FrameFailed(error=FAILURE), stage_id=NEXT_STAGE, frame_id=F2))
    assert work.lost == [Unfinished(window=Window(0, 10), frames=(F1, F2), ordinal=0)]
    assert work.earlier == {}


def test_rows_that_a_later_holder_left_are_not_as_good_as_new() -> None:
    """The holder before it may have fired their effects."""
    story = given(loop_started(collection_size=40), stage_opened(), out(F1, 0, 10))
    story.when(abandoned(ANNA), dispatched(BERT, F1, attempt=2))
    story.when(committed(BERT, F1, row_count=4))

    (work,) = story.state.loop_work.values()
    assert work.returned == []
    assert work.unfinished == [Unfinished(window=Window(4, 6), frames=(F1,))]


def test_a_loop_that_ended_well_is_not_kept() -> None:
    story = given(loop_started(collection_size=40), stage_opened(), loop_done(40))
    assert story.state.kept_loops == {}


def test_a_new_visit_begins_with_nothing() -> None:
    story = failed_loop(out(F1, 0, 10), committed(frame=F1, row_count=10))
    assert story.state.kept_loops.keys() == {STEP}

    story.when(StepEntered(step=STEP, visit=2))

    assert story.state.kept_loops == {}


def test_a_loop_that_begins_anew_takes_nothing_up() -> None:
    story = failed_loop(out(F1, 0, 10), committed(frame=F1, row_count=10))
    story.when(LoopStarted(loop_id=AGAIN, step=STEP, mode="parallel", collection_size=40))
    assert story.state.loop_work[AGAIN].outputs == []
