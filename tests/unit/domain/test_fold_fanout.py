"""What facts about fan-outs make true: shards retried alone, and one fan-in."""

import pytest

from noetl.domain.events import (
    FaninCompleted,
    FrameAbandoned,
    FrameDispatched,
    LoopDone,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Result
from noetl.domain.execution.state import Shard, Window
from noetl.kernel.ids import FrameId, WorkerId
from noetl.testing.given import Placed, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    FAILURE,
    LATER,
    LOOP,
    SOON,
    STAGE,
    STEP,
    enqueued,
    fanout_started,
    in_frame,
    loop_started,
    shard,
    shard_done,
    shard_failed,
    stage_opened,
    stored_result,
    summary,
)


def test_a_fanout_may_stand_alone_or_follow_its_loop() -> None:
    alone = given(fanout_started(3))
    alone.then("loops", LOOP, mode="fanout", total=3, started_event_id=alone.event_id(1))
    following = given(loop_started()).when(fanout_started(3))
    following.then("loops", LOOP, mode="parallel", total=3, started_event_id=following.event_id(1))
    following.then("execution", unmatched_events=0)


def test_a_shard_is_a_frame_of_one_row() -> None:
    story = given(fanout_started(2), stage_opened()).when(enqueued(0), enqueued(1))
    story.then("frames", shard(1), status="PENDING", stage_id=STAGE, ordinal=1, attempts=1)
    story.then("stages", STAGE, frame_count=2, last_event_id=story.event_id(4))

    story.when(shard_done(1, result=stored_result("one")))

    story.then("frames", shard(1), status="COMPLETED", row_count=1, rows_ref=summary("one"))
    story.then("loops", LOOP, total=2, done=1, failed=0)
    story.then("stages", STAGE, row_count=1, frames_failed=0, last_event_id=story.event_id(5))
    story.then("execution", unmatched_events=0)


def test_a_shard_that_may_be_retried_has_not_failed_yet() -> None:
    story = given(fanout_started(1), stage_opened(), enqueued(0))

    story.when(shard_failed(0, final=False))
    story.then("loops", LOOP, done=0, failed=0).then("frames", shard(0), status="PENDING")

    story.when(enqueued(0, attempt=2))
    story.then("frames", shard(0), attempts=2, claimed_event_id=story.event_id(5))
    story.then("stages", STAGE, frame_count=1)

    story.when(shard_done(0, attempt=2))
    story.then("loops", LOOP, done=1, failed=0).then("frames", shard(0), status="COMPLETED")
    story.then("execution", unmatched_events=0)


def test_a_shard_without_retries_left_has_failed() -> None:
    story = given(fanout_started(1), stage_opened(), enqueued(0))
    story.when(shard_failed(0, final=False), enqueued(0, attempt=2))
    story.when(shard_failed(0, attempt=2, final=True))
    story.then("loops", LOOP, done=0, failed=1)
    story.then("frames", shard(0), status="FAILED", error_kind="timeout", attempts=2)
    story.then("stages", STAGE, frames_failed=1, row_count=0)


@pytest.mark.parametrize(
    "again", [shard_done(0), shard_failed(0, final=True), shard_failed(0, final=False)]
)
@pytest.mark.parametrize("end", [shard_done(0), shard_failed(0, final=True)])
def test_a_shard_that_ended_twice_is_counted_once(end: Placed, again: Placed) -> None:
    story = given(fanout_started(2), stage_opened(), enqueued(0), end)
    counted = {name: story.row("loops", LOOP)[name] for name in ("done", "failed")}

    story.when(again)

    story.then("loops", LOOP, **counted).then("execution", unmatched_events=1)
    assert counted["done"] + counted["failed"] == 1
    assert len(story.finished["frames"]) == 1


def test_ten_shards_of_which_three_fail_once_are_complete() -> None:
    story = given(fanout_started(10), stage_opened(), *map(enqueued, range(10)))
    story.when(*(shard_failed(number, final=False) for number in range(3)))
    story.when(*(enqueued(number, attempt=2) for number in range(3)))
    story.when(*(shard_done(number) for number in range(10)))
    story.then("loops", LOOP, total=10, done=10, failed=0).then("stages", STAGE, frame_count=10)

    story.when(FaninCompleted(loop_id=LOOP, status="complete", total=10, done=10))

    story.then("loops", LOOP, fanin_status="complete", completed=False, done=10)


def test_fifty_shards_of_which_two_fail_are_partial() -> None:
    story = given(fanout_started(50), stage_opened(), *map(enqueued, range(50)))
    story.when(*(shard_failed(number, final=True) for number in range(2)))
    story.when(*(shard_done(number) for number in range(2, 50)))
    story.then("loops", LOOP, total=50, done=48, failed=2)

    story.when(
        FaninCompleted(loop_id=LOOP, status="partial", total=50, done=48, failed=2),
        LoopDone(loop_id=LOOP, step=STEP, status="partial", stats=LoopStats(total=50, failed=2)),
    )

    story.then(
        "loops", LOOP, fanin_status="partial", status="partial", completed=True, done=48, failed=2
    )
    assert story.state.frames == {}
    assert len(story.finished["frames"]) == 50


def held(number: int, worker: WorkerId = ANNA, attempt: int = 1, shard_attempt: int = 1) -> Placed:
    event = ShardEnqueued(
        loop_id=LOOP,
        shard_id=str(number),
        iter_index=number,
        worker_id=worker,
        lease_until=SOON,
        attempt=attempt,
        shard_attempt=shard_attempt,
    )
    return in_frame(event, shard(number))


def test_a_shard_on_its_way_has_a_holder_and_a_lease() -> None:
    story = given(loop_started(mode="fanout"), fanout_started(2), stage_opened()).when(held(0))

    story.then("frames", shard(0), status="RUNNING", worker_id=ANNA, lease_until=SOON, attempts=1)
    work = story.state.loop_work[LOOP]
    assert (work.out, work.next_index) == ({shard(0): Window(0, 1)}, 1)


def test_a_shard_that_failed_waits_for_its_next_holder() -> None:
    story = given(loop_started(mode="fanout"), fanout_started(2), stage_opened(), held(0))

    story.when(shard_failed(0, final=False))

    story.then("frames", shard(0), status="PENDING", worker_id=None, lease_until=None)
    work = story.state.loop_work[LOOP]
    assert work.shards[shard(0)] == Shard(attempt=1, has_failed=True)
    assert (work.rows_failed, [*work.out]) == (0, [shard(0)])

    story.when(held(0, BERT, attempt=2, shard_attempt=2))
    story.then("frames", shard(0), status="RUNNING", worker_id=BERT, attempts=2)
    assert work.shards[shard(0)] == Shard(attempt=2)


def test_a_shard_whose_holder_was_lost_is_in_the_same_try() -> None:
    story = given(loop_started(mode="fanout"), fanout_started(2), stage_opened(), held(0))

    story.when(
        in_frame(FrameAbandoned(previous_owner=ANNA, previous_attempts=1), shard(0)),
        in_frame(
            FrameDispatched(ordinal=0, worker_id=BERT, lease_until=LATER, attempt=2), shard(0)
        ),
    )

    story.then("frames", shard(0), worker_id=BERT, attempts=2, abandoned=1)
    assert story.state.loop_work[LOOP].shards[shard(0)] == Shard(attempt=1)
    story.then("execution", unmatched_events=0)


def test_what_shards_came_to_is_the_output_of_the_loop() -> None:
    story = given(loop_started(mode="fanout"), fanout_started(3), stage_opened())
    story.when(held(0), held(1), held(2), held(2, attempt=2, shard_attempt=2))
    small = Result(status="break", context={"value": {"n": 1}})
    story.when(
        shard_failed(2, attempt=2, final=True),
        shard_done(1, result=stored_result("one")),
        shard_done(0, result=small),
    )

    work = story.state.loop_work[LOOP]
    failed, stored, inline = work.outputs
    assert failed.outcomes[0]["error"]["kind"] == FAILURE.kind
    assert failed.frames == (shard(2), FrameId(f"{shard(2)}.2")), "one journal per try"
    assert stored.output_ref is not None
    assert stored.outcomes == []
    assert inline.outcomes == [{"index": 0, "status": "break", "value": {"n": 1}}]
    assert (work.rows_failed, work.rows_broken, work.row_error) == (1, 1, FAILURE)
    assert not work.out
    assert not work.shards


def test_shards_without_frames_are_counted_on_the_loop_alone() -> None:
    story = given(
        fanout_started(3),
        ShardEnqueued(loop_id=LOOP, shard_id="0", iter_index=0),
        ShardDone(loop_id=LOOP, shard_id="0", result=stored_result("one")),
        ShardFailed(loop_id=LOOP, shard_id="1", error=FAILURE, final=True),
    )
    story.then("loops", LOOP, done=1, failed=1).then("execution", unmatched_events=0)
    assert story.state.frames == {}
    assert story.state.execution.payload_refs.count == 1


def test_shards_of_a_loop_that_is_not_open_are_only_counted() -> None:
    story = given(enqueued(0), shard_done(0), shard_failed(0, final=True))
    story.when(FaninCompleted(loop_id=LOOP, status="complete", total=1, done=1))
    story.then("execution", unmatched_events=4)
    assert story.state.loops == {}
    assert story.state.frames == {}
