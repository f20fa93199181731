"""A golden history of a fan-out: shards under leases, one taken over, one tried again."""

from collections.abc import Iterator
from typing import Any

from noetl.domain.events import (
    FaninCompleted,
    FanoutStarted,
    FrameAbandoned,
    FrameDispatched,
    FrameStarted,
    LoopDone,
    LoopStarted,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageClosed,
    StageEngine,
    StageOpened,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result
from noetl.kernel.ids import FrameId, StageId, StepName, WorkerId, loop_id
from noetl.testing.histories import History, begin, finish, frame_output

STEP = StepName("load")
LOOP = loop_id(STEP, 1)
QUICK, QUIET = WorkerId("worker-1"), WorkerId("worker-2")
POLICY = {"max_in_flight": 3, "max_shard_retries": 1, "failure": "continue", "engine": "spark"}
FAILURE = Failure(kind="http", message="409: not now", code="409")


def held_shards(history: History) -> Iterator[Draft]:
    """Three shards on an engine: one is done by its second holder, one at its second try, and one
    fails for good."""
    stage = StageId(history.new_id())
    yield from begin(history)
    yield history.draft(StepEntered(step=STEP))
    items = ["a", "b", "c"]
    yield history.draft(
        LoopStarted(loop_id=LOOP, step=STEP, mode="fanout", collection_size=3, collection=items)
    )
    yield history.draft(FanoutStarted(loop_id=LOOP, step=STEP, total_shards=3))
    opened = StageOpened(stage_kind="fanout", step=STEP, loop_id=LOOP, frame_policy=POLICY)
    yield history.draft(opened, stage_id=stage)
    engine = StageEngine(engine="spark", session_id="session-1", tag="stage-1", slots=2)
    yield history.draft(engine, stage_id=stage)
    places = [{"stage_id": stage, "frame_id": FrameId(history.new_id())} for _ in range(3)]
    for index, place in enumerate(places):
        yield _enqueued(history, index, 1, place)
    yield from _taken_over(history, places[0])
    yield from _tried_again(history, 1, places[1])
    result = Result(status="ok", reference=frame_output(history.execution, STEP, 1, 1))
    done = ShardDone(loop_id=LOOP, shard_id="1", shard_attempt=2, result=result, worker_id=QUICK)
    yield history.draft(done, **places[1])
    yield from _tried_again(history, 2, places[2])
    final = ShardFailed(
        loop_id=LOOP, shard_id="2", shard_attempt=2, error=FAILURE, final=True, writes={"last": 2}
    )
    yield history.draft(final, **places[2])
    fanin = FaninCompleted(loop_id=LOOP, status="partial", total=3, done=2, failed=1)
    yield history.draft(fanin, stage_id=stage)
    stats = LoopStats(total=3, succeeded=2, failed=1)
    writes = {"last": 2}
    yield history.draft(
        LoopDone(loop_id=LOOP, step=STEP, status="partial", stats=stats, writes=writes)
    )
    yield history.draft(StageClosed(status="CLOSED"), stage_id=stage)
    yield history.draft(StepExited(step=STEP, status="COMPLETED"))
    yield from finish(history, STEP)


def _taken_over(history: History, place: dict[str, Any]) -> Iterator[Draft]:
    lost = FrameAbandoned(previous_owner=QUIET, previous_attempts=1)
    yield history.draft(lost, **place)
    lease = history.lease_end()
    again = FrameDispatched(ordinal=0, worker_id=QUICK, lease_until=lease, attempt=2)
    yield history.draft(again, **place)
    yield history.draft(FrameStarted(worker_id=QUICK), **place)
    result = Result(status="ok", context={"value": {"n": 1}})
    done = ShardDone(loop_id=LOOP, shard_id="0", result=result, worker_id=QUICK, writes={"last": 0})
    yield history.draft(done, **place)


def _tried_again(history: History, index: int, place: dict[str, Any]) -> Iterator[Draft]:
    failed = ShardFailed(
        loop_id=LOOP, shard_id=str(index), error=FAILURE, final=False, worker_id=QUIET
    )
    yield history.draft(failed, **place)
    yield _enqueued(history, index, 2, place)


def _enqueued(history: History, index: int, attempt: int, place: dict[str, Any]) -> Draft:
    event = ShardEnqueued(
        loop_id=LOOP,
        shard_id=str(index),
        iter_index=index,
        iter_key=str(index),
        shard_attempt=attempt,
        worker_id=QUIET if attempt == 1 else QUICK,
        lease_until=history.lease_end(),
        attempt=attempt,
    )
    return history.draft(event, **place)
