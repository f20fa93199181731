"""One event of every class, with every field set to something that is not its default."""

from typing import Any

from noetl.domain.events import (
    BatchAccepted,
    BatchCompleted,
    BatchFailed,
    BatchProcessing,
    BusinessObjectChanged,
    BusinessObjectsRecorded,
    CallDone,
    CallFailed,
    CallPartial,
    CheckpointCommitted,
    ChildStarted,
    ChunkPassed,
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandIssued,
    CommandReleased,
    CommandStarted,
    Event,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
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
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageClosed,
    StageEngine,
    StageOpened,
    StepEntered,
    StepExited,
    StepSkipped,
    WorkerCapacity,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, ParentReference, Result, ResultReference
from noetl.domain.payload import PayloadReference
from noetl.kernel.ids import (
    CommandId,
    EventId,
    ExecutionId,
    FrameId,
    LoopId,
    StageId,
    StepName,
    WorkerId,
)
from noetl.kernel.instant import Instant

STEP = StepName("größe/β")
WORKER = WorkerId("worker-7")
LOOP = LoopId("größe/β@2")
COMMAND, STAGE, FRAME = CommandId("c1"), StageId("s1"), FrameId("f1")
LEASE = Instant("2026-01-01T00:02:00.000000Z")
PLACE: dict[str, Any] = {"command_id": COMMAND, "stage_id": STAGE, "frame_id": FRAME}
"""Enough for an event of any family."""

REFERENCE = ResultReference(
    type="object_store",
    uri="noetl://default/default/results/1/load/0/0/1@1",
    ref_id="r1",
    sha256="ab" * 32,
    media_type="application/json",
    schema_digest="cd" * 32,
    byte_length=2**40,
    row_count=3,
)
RESULT = Result(
    status="ok",
    reference=REFERENCE,
    parent_ref=ParentReference(ref_id="r0"),
    context={"rows": 3, "next": None, "price": 0.1, "tags": ["a", {"ü": True}]},
)
FAILURE = Failure(
    kind="http", message="503 ✗", retryable=True, code="E503", detail={"tries": [1, 2]}
)
PAYLOAD = PayloadReference(
    tenant_id="default",
    organization_id="default",
    uri="noetl://tenant/default/org/default/payload/" + "ef" * 32,
    sha256="ef" * 32,
    media_type="text/plain",
    byte_length=12,
    schema_digest="01" * 32,
    row_count=4,
    compression="zstd",
)

SPECIMENS: tuple[Event, ...] = (
    PlaybookInitialized(
        path="examples/orders", playbook_digest="5f" * 32, playbook_version=3,
        workload={"region": "eu", "limits": [1, 2.5]}, payload={"region": "eu"},
        env={"STAGE": "prüfung"}, job_uuid="j1",
        parent_execution_id=ExecutionId("7"), parent_step=STEP,
        parent_stage_id=StageId("s0"), start_key="order 7",
    ),
    PlaybookCompleted(step=STEP, result=RESULT),
    PlaybookFailed(error=FAILURE, step=STEP),
    ExecutionPaused(reason="lunch"),
    ExecutionResumed(),
    ExecutionCancelled(reason="enough", cascade=True),
    ExecutionRetried(
        step=STEP, visit=2, attempt=3, reason="the disk is empty again", also=True
    ),
    ChildStarted(
        cycle="7/größe/β/2/0/book/1", child_execution_id=ExecutionId("8"), path="examples/booking",
        playbook_version=3,
    ),
    StepEntered(step=STEP, visit=2, arrived_from=(STEP, StepName("start"))),
    StepExited(
        step=STEP, status="ok", visit=2, result=RESULT, error=FAILURE, arcs=(StepName("end"),),
        writes={"order.paid": True, "total": 0.1}, handled=True, quiet=True,
    ),
    StepSkipped(
        step=STEP,
        visit=2,
        reason="when",
        arrived_from=(StepName("start"),),
        arcs=(StepName("end"),),
        writes={"order.paid": True},
    ),
    CallDone(
        step=STEP, result=RESULT, visit=2, iteration=5, task="fetch", run=2, duration_ms=17,
        writes={"ctx.total": 3}, effect="fired", tries=4,
    ),
    CallFailed(
        step=STEP, error=FAILURE, visit=2, iteration=5, task="fetch", run=2, duration_ms=17,
        writes={"ctx.total": 3}, effect="fired", tries=4,
    ),
    CallPartial(
        step=STEP, chunk_index=1, has_more=True, result=RESULT, visit=2, iteration=5,
        task="fetch", run=2,
    ),
    ChunkPassed(
        step=STEP, chunk_index=1, visit=2, task="fetch", run=2, arcs=(STEP,), writes={"page": 1}
    ),
    CommandIssued(
        step=STEP, tool="http", visit=2, iteration=5, attempt=2, attempts_max=3,
        parent_command_id=CommandId("c0"), placement="zone-a",
    ),
    CommandClaimed(
        worker_id=WORKER, claim=2, lease_until=LEASE, boot_id="boot-1", placement="zone-b"
    ),
    CommandStarted(worker_id=WORKER, claim=2),
    CommandHeartbeat(worker_id=WORKER, claim=2, lease_until=LEASE),
    CommandReleased(worker_id=WORKER, claim=2),
    CommandCompleted(
        claim=2, worker_id=WORKER, result=RESULT, writes={"total": 3}, duration_ms=17
    ),
    CommandFailed(
        error=FAILURE, claim=2, worker_id=WORKER, result=RESULT, writes={"total": 3},
        duration_ms=17,
    ),
    CommandCancelled(reason="enough"),
    LoopStarted(
        loop_id=LOOP, step=STEP, mode="cursor", visit=2, collection_size=100,
        collection=["a", 1, {"ü": None}], collection_ref=REFERENCE, attempt=2,
    ),
    LoopDone(
        loop_id=LOOP, step=STEP, status="failed", visit=2, result=RESULT, error=FAILURE,
        writes={"last.page": 9},
        stats=LoopStats(total=9, succeeded=4, failed=3, skipped=1, broken=1),
    ),
    FanoutStarted(loop_id=LOOP, step=STEP, total_shards=4, visit=2),
    ShardEnqueued(
        loop_id=LOOP,
        shard_id="x",
        iter_index=1,
        iter_key="k",
        shard_attempt=2,
        worker_id=WORKER,
        lease_until=LEASE,
        attempt=3,
        incarnation=1,
        parent_frame_id=FrameId("f0"),
    ),
    ShardDone(
        loop_id=LOOP,
        shard_id="x",
        shard_attempt=2,
        result=RESULT,
        worker_id=WORKER,
        events_emitted=1,
        writes={"total": 1},
        metrics={"duration_ms": 5},
    ),
    ShardFailed(
        loop_id=LOOP,
        shard_id="x",
        error=FAILURE,
        final=True,
        shard_attempt=2,
        worker_id=WORKER,
        events_emitted=1,
        writes={"total": 1},
        metrics={"duration_ms": 5},
    ),
    FaninCompleted(loop_id=LOOP, status="partial", total=4, done=3, failed=1),
    StageOpened(
        stage_kind="reduce", step=STEP, visit=2, loop_id=LOOP, parent_stage_id=StageId("s0"),
        dsl_ref="steps[1]", frame_policy={"max_rows": 50},
    ),
    StageEngine(
        engine="spark", session_id="local-1", tag="noetl-stage-7-0", slots=2,
        ui_url="http://127.0.0.1:4040",
    ),
    StageClosed(status="COMPLETED", output_ref=REFERENCE),
    FrameDispatched(
        ordinal=4, worker_id=WORKER, lease_until=LEASE, attempt=2, attempts_max=3,
        cursor={"first": 0, "rows": 50}, parent_frame_id=FrameId("f0"), slot=3, incarnation=2,
        previous_owner=WorkerId("w0"), previous_attempts=1, prior_lease_until=LEASE,
        retry_mode="rows", row_split_retry=True,
    ),
    FrameStarted(
        worker_id=WORKER, lease_until=LEASE, input_ref=REFERENCE, transaction_id="t1",
        rows=[{"id": 1}], cursor={"first": 0, "rows": 1},
    ),
    FrameHeartbeat(worker_id=WORKER, lease_until=LEASE),
    FrameAbandoned(
        previous_owner=WORKER, previous_attempts=1, prior_lease_until=LEASE,
        reclaimer=WorkerId("reaper"), attempts_max=3, retry_mode="rows", row_split_retry=True,
        handed_back=True,
    ),
    FrameCommitted(
        worker_id=WORKER, row_count=50, failed_rows=2, events_emitted=5, output_ref=REFERENCE,
        broken_rows=1, outcomes=[{"value": 1}, None], writes={"page": 2}, row_error=FAILURE,
        cursor={"to": 50}, metrics={"task_ms": 1.5},
    ),
    FrameFailed(
        error=FAILURE, worker_id=WORKER, row_count=7, events_emitted=1, output_ref=REFERENCE,
        cursor={"to": 7}, retry_mode="rows", row_split_retry=True, attempts=3, attempts_max=4,
    ),
    BusinessObjectChanged(
        object="order", id="42", status="paid", attributes={"total": 9.5, "note": None},
        deleted=True,
    ),
    BusinessObjectsRecorded(objects_ref=REFERENCE, count=12),
    BatchAccepted(request_id="q1", count=2),
    BatchProcessing(request_id="q1"),
    BatchCompleted(request_id="q1", count=2),
    BatchFailed(request_id="q1", error=FAILURE),
    CheckpointCommitted(epoch_id="e1", last_event_id=EventId("9")),
    WorkerCapacity(worker_id=WORKER, capacity=8, in_use=3, labels={"gpu": False}),
)  # fmt: skip


def specimen(cls: type[Event]) -> Event:
    return next(each for each in SPECIMENS if type(each) is cls)
