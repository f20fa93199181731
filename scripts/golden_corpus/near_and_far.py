"""A golden history of places: where work went, how far from its rows, and to whom it went again."""

from collections.abc import Iterator
from typing import Any

from noetl.domain.events import (
    CommandClaimed,
    CommandCompleted,
    CommandIssued,
    CommandStarted,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameHeartbeat,
    FrameStarted,
    LoopDone,
    LoopStarted,
    PlaybookInitialized,
    StageClosed,
    StageOpened,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result
from noetl.kernel.ids import CommandId, FrameId, StageId, StepName, WorkerId, loop_id
from noetl.kernel.instant import Instant
from noetl.testing.histories import PLAYBOOK_DIGEST, WORKER, History, frame_output

FETCH, SUM, DRAIN = StepName("fetch"), StepName("sum"), StepName("drain")
FAR, REAPER = WorkerId("worker-2"), WorkerId("@reaper")
HERE = {"region": "eu", "zone": "eu-a", "cluster": "blue", "node": "n1"}
THERE = {"region": "us", "zone": "us-b"}
LOST = Failure(kind="lease_lost", message="frame 1 was lost 2 times; its workers went quiet")


def near_and_far(history: History) -> Iterator[Draft]:
    """Nothing of the places is in any state: the fold does not look at them."""
    first = PlaybookInitialized(path="examples/places", playbook_digest=PLAYBOOK_DIGEST)
    yield history.draft(first)
    yield history.draft(StepEntered(step=FETCH))
    command = CommandId(f"{history.execution}/{FETCH}/1/0/1")
    yield history.draft(CommandIssued(step=FETCH, tool="http"), command_id=command)
    claimed = CommandClaimed(worker_id=WORKER, claim=1, lease_until=history.lease_end())
    yield history.draft(claimed, command_id=command, annotations=_place(WORKER, HERE))
    yield history.draft(CommandStarted(worker_id=WORKER, claim=1), command_id=command)
    result = Result(status="ok", reference=frame_output(history.execution, FETCH, 0, 100))
    yield history.draft(CommandCompleted(claim=1, result=result), command_id=command)
    yield history.draft(StepExited(step=FETCH, status="COMPLETED", arcs=(SUM, DRAIN)))
    yield from _reduced(history, result)
    yield from _drained(history)


def _place(worker: WorkerId, place: dict[str, str]) -> dict[str, Any]:
    path = "/".join(f"{level}/{name}" for level, name in place.items())
    return {
        "locality": place,
        "worker_locator": f"noetl://tenant/default/org/default/{path}/worker/{worker}",
    }


def _reduced(history: History, result: Result) -> Iterator[Draft]:
    """Of two frames of a reduce one is worked on where its rows lie, the other is lost twice."""
    stage, near, far = (history.new_id() for _ in range(3))
    loop = loop_id(SUM, 1)
    yield history.draft(StepEntered(step=SUM, arrived_from=(FETCH,)))
    size, reference = 100, result.reference
    yield history.draft(
        LoopStarted(
            loop_id=loop, step=SUM, mode="parallel", collection_size=size, collection_ref=reference
        )
    )
    opened = StageOpened(
        stage_kind="reduce",
        step=SUM,
        loop_id=loop,
        dsl_ref=f"{PLAYBOOK_DIGEST}#{SUM}",
        frame_policy={"process": "frame", "max_rows": 50, "max_attempts": 2},
    )
    place = {"stage_id": StageId(stage)}
    yield history.draft(opened, **place)
    yield from _near(history, {**place, "frame_id": FrameId(near)})
    yield from _far(history, {**place, "frame_id": FrameId(far)}, FrameId(near))
    stats = LoopStats(total=100, succeeded=50, skipped=50)
    done = LoopDone(loop_id=loop, step=SUM, status="failed", stats=stats, error=LOST)
    yield history.draft(done)
    yield history.draft(StageClosed(status="FAILED"), **place)


def _near(history: History, place: dict[str, Any]) -> Iterator[Draft]:
    out = FrameDispatched(
        ordinal=0,
        worker_id=WORKER,
        lease_until=history.lease_end(),
        attempts_max=2,
        cursor={"first": 0, "rows": 50},
        slot=3,
        incarnation=1,
    )
    yield history.draft(out, **place, meta=_told("node"), annotations=_place(WORKER, HERE))
    yield history.draft(FrameStarted(worker_id=WORKER), **place)
    metrics = {"rows": 50, "outcomes": {"ok": 50}, "row_concurrency": 1, "total_task_ms": 40}
    yield history.draft(
        FrameCommitted(worker_id=WORKER, row_count=50, events_emitted=2, metrics=metrics), **place
    )


def _far(history: History, place: dict[str, Any], parent: FrameId) -> Iterator[Draft]:
    """It starts with its first heartbeat; the second holder never says anything."""
    lease = history.lease_end()
    cursor = {"first": 50, "rows": 50}
    out = FrameDispatched(
        ordinal=1,
        worker_id=FAR,
        lease_until=lease,
        attempts_max=2,
        cursor=cursor,
        parent_frame_id=parent,
    )
    meta = {**_told("any"), "claim": ["s1", "0"]}
    yield history.draft(out, **place, meta=meta, annotations=_place(FAR, THERE))
    yield history.draft(FrameStarted(worker_id=FAR, lease_until=lease), **place)
    yield history.draft(FrameHeartbeat(worker_id=FAR, lease_until=lease), **place)
    yield history.draft(_gone(FAR, 1, lease), **place)
    again = FrameDispatched(
        ordinal=1,
        worker_id=WORKER,
        lease_until=history.lease_end(),
        attempt=2,
        attempts_max=2,
        cursor=cursor,
        previous_owner=FAR,
        previous_attempts=1,
        prior_lease_until=lease,
    )
    yield history.draft(again, **place, meta=_told("node"), annotations=_place(WORKER, HERE))
    yield history.draft(_gone(WORKER, 2, again.lease_until), **place)
    failed = FrameFailed(
        error=LOST, worker_id=WORKER, cursor=cursor, attempts=2, attempts_max=2, events_emitted=1
    )
    yield history.draft(failed, **place)


def _told(distance: str) -> dict[str, Any]:
    placement = {"distance": distance, "max_distance": "any", "within_max_distance": True}
    return {"source_locality": HERE, "placement": placement}


def _gone(owner: WorkerId, attempts: int, lease: Instant) -> FrameAbandoned:
    return FrameAbandoned(
        previous_owner=owner,
        previous_attempts=attempts,
        prior_lease_until=lease,
        reclaimer=REAPER,
        attempts_max=2,
    )


def _drained(history: History) -> Iterator[Draft]:
    """Two slots of a cursor find one row; it is open, and one of them will look once more."""
    stage, busy, idle, last = (history.new_id() for _ in range(4))
    loop, place = loop_id(DRAIN, 1), {"stage_id": StageId(stage)}
    yield history.draft(StepEntered(step=DRAIN, arrived_from=(FETCH,)))
    yield history.draft(LoopStarted(loop_id=loop, step=DRAIN, mode="cursor"))
    policy = {"max_in_flight": 2, "max_rows": 1}
    opened = StageOpened(stage_kind="loop", step=DRAIN, loop_id=loop, frame_policy=policy)
    yield history.draft(opened, **place)
    for ordinal, frame in enumerate((busy, idle)):
        yield history.draft(_asked(history, ordinal), **place, frame_id=FrameId(frame))
    claimed = FrameStarted(
        worker_id=WORKER, transaction_id="t1", rows=[7], cursor={"first": 0, "rows": 1}
    )
    yield history.draft(claimed, **place, frame_id=FrameId(busy))
    empty = FrameCommitted(worker_id=WORKER, row_count=0)
    yield history.draft(empty, **place, frame_id=FrameId(idle))
    done = FrameCommitted(worker_id=WORKER, row_count=1, outcomes=[{"index": 0, "status": "ok"}])
    yield history.draft(done, **place, frame_id=FrameId(busy))
    yield history.draft(_asked(history, 2), **place, frame_id=FrameId(last))


def _asked(history: History, ordinal: int) -> FrameDispatched:
    return FrameDispatched(ordinal=ordinal, worker_id=WORKER, lease_until=history.lease_end())
