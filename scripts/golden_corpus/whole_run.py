"""The golden history of a whole run: routing, names, a loop, a child, a failure and a retry."""

from collections.abc import Iterator
from typing import Any

from noetl.domain.events import (
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameStarted,
    LoopDone,
    LoopStarted,
    PlaybookCompleted,
    PlaybookInitialized,
    StageClosed,
    StageOpened,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result
from noetl.kernel.ids import FrameId, StageId, StepName, WorkerId, loop_id
from noetl.testing.histories import (
    PLAYBOOK_DIGEST,
    WORKER,
    History,
    failed_and_retried,
    frame_output,
)

START, EACH, BOOK, NOTIFY, END = (
    StepName(name) for name in ("start", "each_order", "book", "notify", "end")
)
OTHER_WORKER = WorkerId("worker-2")
ORDERS = [{"id": 1, "total": 12.5}, {"id": 2, "total": 0.1}, {"id": 3}, {"id": 4}, {"id": 5}]
BAD_ROW = Failure(kind="value", message="order 3 has no total", detail={"row": 2})


def whole_run(history: History) -> Iterator[Draft]:
    """`start` opens three branches; they meet in `end`, which waits for all that will come."""
    yield history.draft(
        PlaybookInitialized(
            path="examples/whole_run",
            playbook_digest=PLAYBOOK_DIGEST,
            playbook_version=4,
            workload={"region": "eu", "limit": 5},
            payload={"limit": 5},
            env={"STAGE": "test"},
            job_uuid="0b9f5d0e-2f0e-4d53-9d5f-0d7f6c1f0a11",
        )
    )
    yield history.draft(StepEntered(step=START))
    yield history.draft(
        StepExited(
            step=START,
            status="COMPLETED",
            arcs=(EACH, BOOK, NOTIFY),
            writes={"orders.seen": 0, "orders.by": "Zoë", "page": 1},
        )
    )
    yield history.draft(StepEntered(step=EACH, arrived_from=(START,)))
    yield history.draft(StepSkipped(step=NOTIFY, reason="nobody to tell", arcs=(END,)))
    yield from _loop(history, StageId(history.new_id()))
    handled = Failure(kind="loop", message="one order failed")
    yield history.draft(
        StepExited(step=EACH, status="FAILED", error=handled, handled=True, arcs=(END,))
    )
    yield from failed_and_retried(history, BOOK, START, END)
    yield history.draft(StepEntered(step=END, arrived_from=(NOTIFY, EACH, BOOK)))
    result = Result(status="ok", context={"receipt": "R-1"})
    ended = StepExited(step=END, status="COMPLETED", result=result, writes={"receipt": "R-1"})
    yield history.draft(ended)
    yield history.draft(PlaybookCompleted(step=END, result=result))


def _loop(history: History, stage: StageId) -> Iterator[Draft]:
    """Five rows in order: a frame stops half way, one is abandoned, and one is lost for good."""
    loop = loop_id(EACH, 1)
    yield history.draft(
        LoopStarted(
            loop_id=loop, step=EACH, mode="sequential", collection_size=5, collection=ORDERS
        )
    )
    policy = {"max_rows": 3, "max_in_flight": 1, "process": "inline", "failure": "continue"}
    opened = StageOpened(stage_kind="loop", step=EACH, loop_id=loop, frame_policy=policy)
    yield history.draft(opened, stage_id=stage)
    yield from _half_a_frame(history, stage_id=stage, frame_id=FrameId(history.new_id()))
    yield from _frame_that_moved(history, stage_id=stage, frame_id=FrameId(history.new_id()))
    lost: dict[str, Any] = {"stage_id": stage, "frame_id": FrameId(history.new_id())}
    yield _dispatched(history, 2, 3, 2, **lost)
    gone = Failure(kind="lease", message="no holder finished it", retryable=False)
    yield history.draft(FrameFailed(error=gone, worker_id=WORKER), **lost)
    result = Result(
        status="ok", context={"count": 5}, reference=frame_output(history.execution, EACH, 0, 3)
    )
    yield history.draft(
        LoopDone(
            loop_id=loop,
            step=EACH,
            status="failed",
            stats=LoopStats(total=5, succeeded=2, failed=1, skipped=2, broken=1),
            result=result,
            error=gone,
            writes={"orders.last": 3},
        )
    )
    yield history.draft(StageClosed(status="FAILED", output_ref=result.reference), stage_id=stage)


def _half_a_frame(history: History, **place: Any) -> Iterator[Draft]:
    """Three rows went out; two came back, and the third is handed out again."""
    yield _dispatched(history, 0, 0, 3, **place)
    yield history.draft(FrameStarted(worker_id=WORKER), **place)
    yield history.draft(
        FrameCommitted(
            worker_id=WORKER,
            row_count=2,
            outcomes=[{"value": {"id": 1}}, {"value": None}],
            writes={"orders.seen": 2, "orders.last": 2},
            metrics={"duration_ms": 40},
        ),
        **place,
    )


def _frame_that_moved(history: History, **place: Any) -> Iterator[Draft]:
    yield _dispatched(history, 1, 2, 1, **place)
    yield history.draft(FrameAbandoned(previous_owner=WORKER, previous_attempts=1), **place)
    again = FrameDispatched(
        ordinal=1,
        worker_id=OTHER_WORKER,
        lease_until=history.lease_end(),
        attempt=2,
        cursor={"first": 2, "rows": 1},
    )
    yield history.draft(again, **place)
    yield history.draft(
        FrameCommitted(
            worker_id=OTHER_WORKER,
            row_count=1,
            failed_rows=1,
            broken_rows=1,
            output_ref=frame_output(history.execution, EACH, 1, 1),
            outcomes=[{"error": "no total"}],
            writes={"orders.seen": 3},
            row_error=BAD_ROW,
        ),
        **place,
    )


def _dispatched(history: History, ordinal: int, first: int, rows: int, **place: Any) -> Draft:
    event = FrameDispatched(
        ordinal=ordinal,
        worker_id=WORKER,
        lease_until=history.lease_end(),
        attempts_max=10,
        cursor={"first": first, "rows": rows},
    )
    return history.draft(event, **place)
