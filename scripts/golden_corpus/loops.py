"""Golden histories of loops: frames under leases, and a fan-out that ends in part."""

from collections.abc import Iterator
from typing import Any

from noetl.domain.events import (
    BusinessObjectsRecorded,
    CallDone,
    FaninCompleted,
    FanoutStarted,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameHeartbeat,
    FrameStarted,
    LoopDone,
    LoopStarted,
    PlaybookFailed,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageClosed,
    StageOpened,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result
from noetl.kernel.ids import CommandId, FrameId, StageId, StepName, WorkerId, loop_id
from noetl.kernel.instant import plus
from noetl.testing.histories import History, begin, finish, frame_output

STEP = StepName("load")
LOOP = loop_id(STEP, 1)
QUICK, QUIET = WorkerId("worker-1"), WorkerId("worker-2")
FAILURE = Failure(kind="schema", message="column price is missing", detail={"row": 7})


def frames(history: History) -> Iterator[Draft]:
    """Three frames: one is committed, one is abandoned and handed out again, one fails."""
    stage = StageId(history.new_id())
    collection = frame_output(history.execution, STEP, 9, 150)
    yield from begin(history)
    yield history.draft(StepEntered(step=STEP))
    yield history.draft(
        LoopStarted(
            loop_id=LOOP, step=STEP, mode="parallel", collection_size=150, collection_ref=collection
        ),
        stage_id=stage,
    )
    opened = StageOpened(stage_kind="loop", step=STEP, loop_id=LOOP, frame_policy={"max_rows": 50})
    yield history.draft(opened, stage_id=stage)
    first, second, third = (FrameId(history.new_id()) for _ in range(3))
    for ordinal, (frame, worker) in enumerate(((first, QUICK), (second, QUIET), (third, QUICK))):
        yield _dispatched(history, ordinal, worker, stage_id=stage, frame_id=frame)
    yield from _quick_frame(history, stage_id=stage, frame_id=first)
    yield from _abandoned_frame(history, stage_id=stage, frame_id=second)
    failed = FrameFailed(error=FAILURE, worker_id=QUICK, row_count=7, events_emitted=2)
    yield history.draft(failed, stage_id=stage, frame_id=third)
    closed = StageClosed(status="COMPLETED", output_ref=collection)
    yield history.draft(closed, stage_id=stage)
    stats = LoopStats(total=150, succeeded=97, failed=53)
    yield history.draft(LoopDone(loop_id=LOOP, step=STEP, status="ok", stats=stats))
    yield history.draft(StepExited(step=STEP, status="ok", arcs=(StepName("report"),)))
    yield from finish(history, STEP)


def _dispatched(history: History, ordinal: int, worker: WorkerId, **place: Any) -> Draft:
    window = {"from": ordinal * 50, "to": ordinal * 50 + 50}
    event = FrameDispatched(
        ordinal=ordinal,
        worker_id=worker,
        lease_until=history.lease_end(),
        attempts_max=3,
        cursor=window,
        slot=ordinal,
    )
    return history.draft(event, **place)


def _quick_frame(history: History, **place: Any) -> Iterator[Draft]:
    output = frame_output(history.execution, STEP, 0, 50)
    lease = plus(history.lease_end(), seconds=30)
    yield history.draft(FrameStarted(worker_id=QUICK, lease_until=lease, input_ref=output), **place)
    yield history.draft(
        FrameCommitted(
            worker_id=QUICK, row_count=50, failed_rows=3, events_emitted=4, output_ref=output
        ),
        **place,
    )
    recorded = BusinessObjectsRecorded(objects_ref=output, count=4)
    yield history.draft(recorded, **place)


def _abandoned_frame(history: History, **place: Any) -> Iterator[Draft]:
    lease = history.lease_end()
    yield history.draft(FrameStarted(worker_id=QUIET), **place)
    yield history.draft(FrameHeartbeat(worker_id=QUIET, lease_until=lease), **place)
    yield history.draft(
        FrameAbandoned(
            previous_owner=QUIET,
            previous_attempts=1,
            prior_lease_until=lease,
            reclaimer=QUICK,
            attempts_max=3,
        ),
        **place,
    )
    late = FrameHeartbeat(worker_id=QUIET, lease_until=plus(lease, seconds=60))
    yield history.draft(late, **place)
    again = FrameDispatched(ordinal=1, worker_id=QUICK, lease_until=lease, attempt=2)
    yield history.draft(again, **place)
    yield history.draft(FrameStarted(worker_id=QUICK, transaction_id="tx-81"), **place)
    output = frame_output(history.execution, STEP, 1, 50)
    committed = FrameCommitted(
        worker_id=QUICK, row_count=50, output_ref=output, cursor={"from": 50, "to": 100}
    )
    yield history.draft(committed, **place)


def fanout(history: History) -> Iterator[Draft]:
    """Three shards: one is done at once, one at the second try, one fails for good."""
    stage = StageId(history.new_id())
    yield from begin(history)
    yield history.draft(StepEntered(step=STEP))
    yield history.draft(LoopStarted(loop_id=LOOP, step=STEP, mode="fanout", collection_size=3))
    opened = StageOpened(stage_kind="fanout", step=STEP, loop_id=LOOP)
    yield history.draft(opened, stage_id=stage)
    yield history.draft(FanoutStarted(loop_id=LOOP, step=STEP, total_shards=3), stage_id=stage)
    places = [
        {"stage_id": stage, "frame_id": FrameId(history.new_id()), "command_id": _command(index)}
        for index in range(3)
    ]
    for index, place in enumerate(places):
        yield _enqueued(history, index, 1, place)
    yield from _shards(history, places)
    fanin = FaninCompleted(loop_id=LOOP, status="partial", total=3, done=2, failed=1)
    yield history.draft(fanin, stage_id=stage)
    yield history.draft(StageClosed(status="PARTIAL"), stage_id=stage)
    stats = LoopStats(total=3, succeeded=2, failed=1)
    yield history.draft(LoopDone(loop_id=LOOP, step=STEP, status="partial", stats=stats))
    yield history.draft(StepExited(step=STEP, status="error", error=FAILURE))
    yield history.draft(PlaybookFailed(error=FAILURE, step=STEP))


def _shards(history: History, places: list[dict[str, Any]]) -> Iterator[Draft]:
    result = Result(status="ok", reference=frame_output(history.execution, STEP, 0, 1))
    called = CallDone(step=STEP, iteration=0, task="get", result=Result(status="ok"))
    yield history.draft(called, stage_id=places[0]["stage_id"], frame_id=places[0]["frame_id"])
    done = ShardDone(loop_id=LOOP, shard_id="shard-0", result=result)
    yield history.draft(done, **places[0])
    for index in (1, 2):
        failed = ShardFailed(loop_id=LOOP, shard_id=f"shard-{index}", error=FAILURE, final=False)
        yield history.draft(failed, **places[index])
        yield _enqueued(history, index, 2, places[index])
    again = ShardDone(loop_id=LOOP, shard_id="shard-1", shard_attempt=2)
    yield history.draft(again, **places[1])
    final = ShardFailed(
        loop_id=LOOP, shard_id="shard-2", error=FAILURE, final=True, shard_attempt=2
    )
    yield history.draft(final, **places[2])


def _enqueued(history: History, index: int, attempt: int, place: dict[str, Any]) -> Draft:
    event = ShardEnqueued(
        loop_id=LOOP,
        shard_id=f"shard-{index}",
        iter_index=index,
        iter_key=f"eu/{index}",
        shard_attempt=attempt,
    )
    return history.draft(event, **place)


def _command(index: int) -> CommandId:
    return CommandId(f"{STEP}/1/{index}/1")
