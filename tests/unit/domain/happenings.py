"""Short ways to say what happened to one command, frame, stage, loop or object."""

from typing import Any

from noetl.domain.events import (
    BusinessObjectChanged,
    CallDone,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandIssued,
    CommandStarted,
    FanoutStarted,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameHeartbeat,
    FrameStarted,
    LoopDone,
    LoopStarted,
    PlaybookInitialized,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageOpened,
    StepExited,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result, ResultReference
from noetl.kernel.ids import CommandId, FrameId, LoopId, StageId, StepName, WorkerId
from noetl.kernel.instant import Instant
from noetl.testing.given import Placed, at

STEP = StepName("load")
ANNA, BERT = WorkerId("anna"), WorkerId("bert")
COMMAND, STAGE, FRAME, LOOP = CommandId("c1"), StageId("s1"), FrameId("f1"), LoopId("load@1")
SOON = Instant("2026-01-01T00:02:00.000000Z")
LATER = Instant("2026-01-01T00:04:00.000000Z")
FAILURE = Failure(kind="timeout", message="took too long")

STARTED = PlaybookInitialized(path="examples/orders", playbook_digest="5f" * 32)


def reference(name: str, rows: int | None = None) -> ResultReference:
    return ResultReference(
        type="object_store", uri=f"noetl://{name}", sha256="ab" * 32, row_count=rows
    )


def summary(name: str, rows: int | None = None) -> dict[str, Any]:
    """What a row keeps of `reference(name)`."""
    return {
        "ref": f"noetl://{name}",
        "sha256": "ab" * 32,
        "schema_digest": None,
        "row_count": rows,
        "media_type": None,
    }


def stored_result(name: str) -> Result:
    return Result(status="ok", reference=reference(name))


def issued(command: CommandId = COMMAND, **fields: Any) -> Placed:
    return at(CommandIssued(step=STEP, tool="http", **fields), command_id=command)


def claimed(worker: WorkerId = ANNA, claim: int = 1, until: Instant = SOON) -> Placed:
    event = CommandClaimed(worker_id=worker, claim=claim, lease_until=until)
    return at(event, command_id=COMMAND)


def started(worker: WorkerId = ANNA, claim: int = 1) -> Placed:
    return at(CommandStarted(worker_id=worker, claim=claim), command_id=COMMAND)


def heartbeat(worker: WorkerId = ANNA, claim: int = 1, until: Instant = LATER) -> Placed:
    event = CommandHeartbeat(worker_id=worker, claim=claim, lease_until=until)
    return at(event, command_id=COMMAND)


def called(**fields: Any) -> Placed:
    event = CallDone(step=STEP, result=Result(status="ok"), **fields)
    return at(event, command_id=COMMAND)


def completed(claim: int = 1, **fields: Any) -> Placed:
    return at(CommandCompleted(claim=claim, **fields), command_id=COMMAND)


def failed(claim: int = 1, **fields: Any) -> Placed:
    return at(CommandFailed(claim=claim, error=FAILURE, **fields), command_id=COMMAND)


def left(step: StepName = STEP, status: str = "COMPLETED", **fields: Any) -> StepExited:
    return StepExited(step=step, status=status, **fields)


def loop_started(loop: LoopId = LOOP, **fields: Any) -> LoopStarted:
    return LoopStarted(loop_id=loop, step=STEP, **{"mode": "parallel"} | fields)


def loop_done(total: int, **fields: Any) -> LoopDone:
    stats = LoopStats(total=total, succeeded=total)
    given: dict[str, Any] = {"status": "completed", "stats": stats} | fields
    return LoopDone(loop_id=LOOP, step=STEP, **given)


def stage_opened(**fields: Any) -> Placed:
    return at(StageOpened(stage_kind="loop", step=STEP, loop_id=LOOP, **fields), stage_id=STAGE)


def in_frame(event: Any, frame: FrameId = FRAME) -> Placed:
    return at(event, stage_id=STAGE, frame_id=frame)


def dispatched(worker: WorkerId = ANNA, frame: FrameId = FRAME, **fields: Any) -> Placed:
    given: dict[str, Any] = {"ordinal": 0, "lease_until": SOON} | fields
    return in_frame(FrameDispatched(worker_id=worker, **given), frame)


def frame_started(worker: WorkerId = ANNA, **fields: Any) -> Placed:
    return in_frame(FrameStarted(worker_id=worker, **fields))


def frame_heartbeat(worker: WorkerId = ANNA) -> Placed:
    return in_frame(FrameHeartbeat(worker_id=worker, lease_until=LATER))


def abandoned(owner: WorkerId = ANNA) -> Placed:
    return in_frame(FrameAbandoned(previous_owner=owner, previous_attempts=1))


def committed(worker: WorkerId = ANNA, frame: FrameId = FRAME, **fields: Any) -> Placed:
    return in_frame(FrameCommitted(worker_id=worker, **{"row_count": 50} | fields), frame)


def fanout_started(shards: int) -> FanoutStarted:
    return FanoutStarted(loop_id=LOOP, step=STEP, total_shards=shards)


def enqueued(number: int, attempt: int = 1) -> Placed:
    event = ShardEnqueued(
        loop_id=LOOP, shard_id=str(number), iter_index=number, shard_attempt=attempt
    )
    return in_frame(event, shard(number))


def shard_done(number: int, attempt: int = 1, result: Result | None = None) -> Placed:
    event = ShardDone(loop_id=LOOP, shard_id=str(number), shard_attempt=attempt, result=result)
    return in_frame(event, shard(number))


def shard_failed(number: int, attempt: int = 1, *, final: bool) -> Placed:
    event = ShardFailed(
        loop_id=LOOP, shard_id=str(number), shard_attempt=attempt, error=FAILURE, final=final
    )
    return in_frame(event, shard(number))


def shard(number: int) -> FrameId:
    return FrameId(f"shard-{number}")


def order(**fields: Any) -> BusinessObjectChanged:
    return BusinessObjectChanged(object="order", id="42", **fields)
