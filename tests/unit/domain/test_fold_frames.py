"""What facts about stages and frames make true: windows of rows under a lease, and their sums."""

from typing import Any

from noetl.domain.events import FrameAbandoned, FrameFailed, LoopDone, StageClosed
from noetl.domain.events.loop import LoopStats
from noetl.kernel.ids import CommandId, FrameId
from noetl.testing.given import at, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    FAILURE,
    FRAME,
    LATER,
    LOOP,
    SOON,
    STAGE,
    STEP,
    abandoned,
    committed,
    dispatched,
    frame_heartbeat,
    frame_started,
    in_frame,
    loop_started,
    reference,
    stage_opened,
    summary,
)

SECOND = FrameId("f2")


def test_an_opened_stage_has_no_frames_yet() -> None:
    story = given(stage_opened(visit=2, dsl_ref="steps[1]", frame_policy={"max_rows": 50}))
    story.then(
        "stages",
        STAGE,
        status="OPEN",
        stage_kind="loop",
        step=STEP,
        visit=2,
        loop_id=LOOP,
        dsl_ref="steps[1]",
        frame_policy={"max_rows": 50},
        opened_event_id=story.event_id(1),
        frame_count=0,
        row_count=0,
    )
    story.then("execution", last_node_name=STEP)


def test_a_dispatched_frame_is_held_by_a_worker() -> None:
    event = dispatched(ordinal=4, cursor={"from": 0}, parent_frame_id=FrameId("f0")).event
    place = {"stage_id": STAGE, "frame_id": FRAME, "command_id": CommandId("c1")}
    story = given(stage_opened()).when(at(event, **place))
    story.then(
        "frames",
        FRAME,
        status="CLAIMED",
        stage_id=STAGE,
        ordinal=4,
        parent_frame_id="f0",
        command_id="c1",
        worker_id=ANNA,
        lease_until=SOON,
        attempts=1,
        cursor={"from": 0},
    )


def test_a_frame_is_started_kept_alive_and_committed() -> None:
    story = given(stage_opened(), dispatched())
    story.when(frame_started(input_ref=reference("input"))).then(
        "frames", FRAME, status="RUNNING", lease_until=SOON, input_ref=summary("input")
    )
    story.when(frame_heartbeat()).then("frames", FRAME, lease_until=LATER)

    output: dict[str, Any] = {
        "row_count": 50,
        "output_ref": reference("rows", 50),
        "cursor": {"to": 50},
    }
    story.when(committed(failed_rows=2, events_emitted=3, **output))

    story.then(
        "frames",
        FRAME,
        status="COMPLETED",
        row_count=50,
        rows_failed=2,
        events_emitted=3,
        rows_ref=summary("rows", 50),
        cursor={"to": 50},
        lease_until=None,
        claimed_event_id=story.event_id(2),
        started_event_id=story.event_id(3),
        terminal_event_id=story.event_id(5),
        terminal_version=5,
    )
    assert story.state.frames == {}
    story.then("execution", unmatched_events=0)


def test_a_start_may_renew_the_lease() -> None:
    given(stage_opened(), dispatched()).when(frame_started(lease_until=LATER)).then(
        "frames", FRAME, lease_until=LATER
    )


def test_an_abandoned_frame_is_dispatched_again_and_committed_by_another() -> None:
    story = given(stage_opened(), dispatched(ANNA, cursor={"from": 0}), frame_started(ANNA))

    story.when(abandoned(ANNA)).then(
        "frames", FRAME, status="PENDING", worker_id=None, lease_until=None, abandoned=1
    )
    story.when(dispatched(BERT, attempt=2, lease_until=LATER, cursor={"from": 0})).then(
        "frames",
        FRAME,
        status="CLAIMED",
        worker_id=BERT,
        attempts=2,
        lease_until=LATER,
        started_event_id=None,
        claimed_event_id=story.event_id(5),
    )
    story.when(committed(BERT)).then("frames", FRAME, status="COMPLETED", abandoned=1, attempts=2)
    story.then("stages", STAGE, frame_count=1, frames_abandoned=1, row_count=50)
    story.then("execution", unmatched_events=0)


def test_a_worker_that_lost_its_lease_changes_nothing_any_more() -> None:
    story = given(stage_opened(), dispatched(ANNA), abandoned(ANNA), dispatched(BERT))
    before = story.row("frames", FRAME)
    story.when(frame_started(ANNA), frame_heartbeat(ANNA), abandoned(ANNA))
    assert story.row("frames", FRAME) == before
    story.then("execution", unmatched_events=3).then("stages", STAGE, frames_abandoned=1)


def test_a_frame_that_someone_holds_is_not_handed_out_twice() -> None:
    story = given(stage_opened(), dispatched(ANNA)).when(dispatched(BERT))
    story.then("frames", FRAME, worker_id=ANNA).then("execution", unmatched_events=1)
    story.then("stages", STAGE, frame_count=1)


def test_the_first_end_of_a_frame_counts() -> None:
    story = given(stage_opened(), dispatched(), committed(row_count=50))
    story.when(committed(row_count=50), in_frame(FrameFailed(error=FAILURE)), abandoned())
    story.then("frames", FRAME, status="COMPLETED").then("execution", unmatched_events=3)
    story.then("stages", STAGE, row_count=50, frames_failed=0)
    assert len(story.finished["frames"]) == 1


def test_a_failed_frame_is_a_failed_frame_of_its_stage() -> None:
    failed = FrameFailed(
        error=FAILURE, row_count=7, events_emitted=2, output_ref=reference("part"), cursor={"to": 7}
    )
    story = given(stage_opened(), dispatched()).when(in_frame(failed))
    story.then(
        "frames",
        FRAME,
        status="FAILED",
        error_kind="timeout",
        row_count=7,
        events_emitted=2,
        rows_ref=summary("part"),
        cursor={"to": 7},
    )
    story.then("stages", STAGE, frames_failed=1, row_count=0, events_emitted=2)


def test_a_cursor_that_a_commit_does_not_name_stays() -> None:
    given(stage_opened(), dispatched(cursor={"from": 9})).when(committed()).then(
        "frames", FRAME, cursor={"from": 9}
    )


def test_a_stage_adds_its_frames_up() -> None:
    story = given(loop_started(collection_size=100), stage_opened())
    story.when(
        dispatched(),
        dispatched(frame=SECOND, ordinal=1),
        committed(row_count=50, failed_rows=2, events_emitted=1),
        committed(frame=SECOND, row_count=30, failed_rows=1, events_emitted=2),
    )
    story.then("stages", STAGE, frame_count=2, row_count=80, rows_failed=3, events_emitted=3)
    story.then("stages", STAGE, last_event_id=story.event_id(6))
    story.then("loops", LOOP, total=100, done=77, failed=3, last_event_id=story.event_id(6))


def test_frames_of_a_stage_without_a_loop_are_only_added_up_there() -> None:
    story = given(stage_opened()).when(dispatched(), committed())
    story.then("stages", STAGE, row_count=50).then("execution", unmatched_events=0)


def test_a_frame_that_outlives_its_stage_still_ends() -> None:
    closed = at(StageClosed(status="CANCELLED"), stage_id=STAGE)
    story = given(stage_opened(), dispatched(), closed).when(committed())
    story.then("frames", FRAME, status="COMPLETED")
    story.then("stages", STAGE, row_count=0, status="CANCELLED")
    story.then("execution", unmatched_events=0)


def test_a_closed_stage_names_its_dataset() -> None:
    story = given(stage_opened(), dispatched(), committed())
    story.when(at(StageClosed(status="COMPLETED", output_ref=reference("all")), stage_id=STAGE))
    story.then(
        "stages",
        STAGE,
        status="COMPLETED",
        output_ref=summary("all"),
        closed_event_id=story.event_id(4),
        last_event_id=story.event_id(4),
        terminal_version=4,
        row_count=50,
    )
    assert story.state.stages == {}


def test_a_finished_loop_says_what_became_of_its_rows() -> None:
    stats = LoopStats(total=100, succeeded=80, failed=5, skipped=15)
    story = given(loop_started(collection_size=90, collection_ref=reference("in"))).when(
        LoopDone(loop_id=LOOP, step=STEP, status="ok", stats=stats)
    )
    story.then(
        "loops",
        LOOP,
        status="ok",
        completed=True,
        total=100,
        done=95,
        failed=5,
        collection_ref=summary("in"),
        started_event_id=story.event_id(1),
        terminal_version=2,
    )
    assert story.state.loops == {}
    story.then("execution", last_node_name=STEP)


def test_a_frame_that_was_handed_back_was_not_lost() -> None:
    back = FrameAbandoned(previous_owner=ANNA, previous_attempts=1, handed_back=True)
    story = given(stage_opened(), dispatched(ANNA), in_frame(back))
    story.then("frames", FRAME, status="PENDING", abandoned=1)
    assert story.state.handed_back == {FRAME: 1}
    story.when(dispatched(BERT, attempt=2), abandoned(BERT))
    assert story.state.handed_back == {FRAME: 1}
    story.when(dispatched(BERT, attempt=3), committed(BERT))
    assert story.state.handed_back == {}
