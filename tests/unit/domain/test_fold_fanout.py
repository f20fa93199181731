"""What facts about fan-outs make true: shards retried alone, and one fan-in."""

import pytest

from noetl.domain.events import FaninCompleted, LoopDone, ShardDone, ShardEnqueued, ShardFailed
from noetl.domain.events.loop import LoopStats
from noetl.testing.given import Placed, given
from tests.unit.domain.happenings import (
    FAILURE,
    LOOP,
    STAGE,
    STEP,
    enqueued,
    fanout_started,
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
