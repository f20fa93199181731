"""Ready-made histories: whole executions as drafts, for tests, benchmarks and demonstrations."""

from collections.abc import Iterator
from typing import Any

from noetl.domain.events import (
    CallDone,
    ChildStarted,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    CommandStarted,
    Event,
    ExecutionRetried,
    FrameCommitted,
    FrameDispatched,
    FrameStarted,
    LoopDone,
    LoopStarted,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    StageClosed,
    StageOpened,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft, Source
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result, ResultReference
from noetl.kernel.ids import (
    CommandId,
    EventId,
    ExecutionId,
    FrameId,
    StageId,
    StepName,
    WorkerId,
    idempotency_key,
    loop_id,
)
from noetl.kernel.instant import Instant, from_millis, plus
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.kernel.snowflake import SnowflakeSequence

START_MILLIS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
WORKER = WorkerId("worker-1")
PLAYBOOK_DIGEST = "5f" * 32


def execution_ids(count: int, *, node: int = 1) -> list[ExecutionId]:
    """Ids that are the same in every run."""
    ids = SnowflakeSequence(node)
    return [ExecutionId(ids.next(START_MILLIS)) for _ in range(count)]


def source_of(execution: ExecutionId, scope: Scope = DEFAULT_SCOPE) -> Source:
    return Source(
        scope=scope, execution_id=execution, producer="noetl://tenant/default/worker/worker-1"
    )


class History:
    """Turns events into drafts with ids and times that rise by one millisecond per event."""

    def __init__(self, execution: ExecutionId, *, node: int = 2) -> None:
        self.execution = execution
        self._ids = SnowflakeSequence(node)
        self._millis = START_MILLIS

    def draft(self, event: Event, **envelope: Any) -> Draft:
        self._millis += 1
        return Draft(
            event_id=EventId(self._ids.next(self._millis)),
            event=event,
            event_time=from_millis(self._millis),
            **envelope,
        )

    def new_id(self) -> str:
        return self._ids.next(self._millis)

    def lease_end(self) -> Instant:
        return plus(from_millis(self._millis), seconds=120)


def begin(history: History) -> Iterator[Draft]:
    yield history.draft(
        PlaybookInitialized(
            path="examples/orders",
            playbook_digest=PLAYBOOK_DIGEST,
            workload={"region": "eu", "limit": 50},
        )
    )


def finish(history: History, step: StepName) -> Iterator[Draft]:
    yield history.draft(PlaybookCompleted(step=step, result=Result(status="ok")))


def command_cycle(
    history: History, step: StepName, visit: int = 1, context: dict[str, Any] | None = None
) -> Iterator[Draft]:
    """One single-tool step from entry to exit: seven events, two of them reported with a key."""
    command = CommandId(f"{history.execution}/{step}/{visit}/0/1")
    result = Result(status="ok", context=context or {"row_count": 12, "status_code": 200})
    yield history.draft(StepEntered(step=step, visit=visit))
    yield history.draft(CommandIssued(step=step, tool="http", visit=visit), command_id=command)
    claimed = CommandClaimed(worker_id=WORKER, claim=1, lease_until=history.lease_end())
    yield history.draft(claimed, command_id=command)
    yield history.draft(CommandStarted(worker_id=WORKER, claim=1), command_id=command)
    yield history.draft(
        CallDone(step=step, visit=visit, task="fetch", result=result, duration_ms=41),
        command_id=command,
        idempotency_key=idempotency_key(DEFAULT_SCOPE, command, CallDone.TYPE, 1),
    )
    yield history.draft(
        CommandCompleted(worker_id=WORKER, claim=1, result=result, duration_ms=44),
        command_id=command,
        idempotency_key=idempotency_key(DEFAULT_SCOPE, command, CommandCompleted.TYPE, 1),
    )
    yield history.draft(StepExited(step=step, visit=visit, status="ok", result=result))


def loop_of_frames(
    history: History, step: StepName, frames: int, rows_per_frame: int = 50, visit: int = 1
) -> Iterator[Draft]:
    """One pass of a loop: a stage and its frames, three events per frame."""
    stage = StageId(history.new_id())
    loop = loop_id(step, visit)
    rows = frames * rows_per_frame
    yield history.draft(
        LoopStarted(loop_id=loop, step=step, visit=visit, mode="parallel", collection_size=rows),
        stage_id=stage,
    )
    opened = StageOpened(
        stage_kind="loop",
        step=step,
        visit=visit,
        loop_id=loop,
        frame_policy={"max_rows": rows_per_frame},
    )
    yield history.draft(opened, stage_id=stage)
    parent: FrameId | None = None
    for ordinal in range(frames):
        frame = FrameId(history.new_id())
        place = {"stage_id": stage, "frame_id": frame}
        dispatched = FrameDispatched(
            ordinal=ordinal,
            worker_id=WORKER,
            lease_until=history.lease_end(),
            cursor={"first": ordinal * rows_per_frame, "rows": rows_per_frame},
            parent_frame_id=parent,
        )
        yield history.draft(dispatched, **place)
        yield history.draft(FrameStarted(worker_id=WORKER), **place)
        committed = FrameCommitted(
            worker_id=WORKER,
            row_count=rows_per_frame,
            output_ref=frame_output(history.execution, step, ordinal, rows_per_frame),
            metrics={"task_ms": 812, "tool_ms": 790},
        )
        yield history.draft(committed, **place)
        parent = frame
    yield history.draft(StageClosed(status="COMPLETED"), stage_id=stage)
    stats = LoopStats(total=rows, succeeded=rows)
    yield history.draft(LoopDone(loop_id=loop, step=step, visit=visit, status="ok", stats=stats))


def failed_and_retried(
    history: History,
    step: StepName,
    came_from: StepName | None = None,
    goes_to: StepName | None = None,
) -> Iterator[Draft]:
    """A step fails with its execution, and the same visit succeeds when a person retries it."""
    first, second = (CommandId(f"{history.execution}/{step}/1/0/{attempt}") for attempt in (1, 2))
    error = Failure(kind="http", message="503 from the bank", retryable=True)
    sources = () if came_from is None else (came_from,)
    yield history.draft(StepEntered(step=step, arrived_from=sources))
    yield from _handed_out(history, step, first)
    paid = Result(status="ok", context={"paid": True})
    called = CallDone(
        step=step, task="pay", result=paid, writes={"ctx.paid": True}, effect="fired", duration_ms=9
    )
    yield history.draft(called, command_id=first)
    failed = CommandFailed(worker_id=WORKER, claim=1, error=error, writes={"bank.tries": 1})
    yield history.draft(failed, command_id=first)
    yield history.draft(StepExited(step=step, status="FAILED", error=error))
    yield history.draft(PlaybookFailed(step=step, error=error))
    yield history.draft(ExecutionRetried(step=step, visit=1, attempt=2, reason="the bank is back"))
    yield from _handed_out(history, step, second, attempt=2)
    child = ChildStarted(
        cycle=f"{history.execution}/{step}/1/0/book/1",
        child_execution_id=ExecutionId(history.new_id()),
        path="examples/booking",
        playbook_version=3,
    )
    yield history.draft(child, command_id=second)
    result = Result(status="ok", context={"receipt": "R-1"})
    completed = CommandCompleted(worker_id=WORKER, claim=1, result=result, writes={"bank.tries": 2})
    yield history.draft(completed, command_id=second)
    targets = () if goes_to is None else (goes_to,)
    yield history.draft(StepExited(step=step, status="COMPLETED", arcs=targets))


def _handed_out(
    history: History, step: StepName, command: CommandId, attempt: int = 1
) -> Iterator[Draft]:
    issued = CommandIssued(step=step, tool="task_sequence", attempt=attempt, attempts_max=10)
    yield history.draft(issued, command_id=command)
    claimed = CommandClaimed(worker_id=WORKER, claim=1, lease_until=history.lease_end())
    yield history.draft(claimed, command_id=command)
    yield history.draft(CommandStarted(worker_id=WORKER, claim=1), command_id=command)


def frame_output(
    execution: ExecutionId, step: StepName, ordinal: int, rows: int
) -> ResultReference:
    return ResultReference(
        type="object_store",
        uri=f"noetl://default/default/results/{execution}/{step}/{ordinal}/0/1@1",
        sha256=f"{ordinal:064x}",
        media_type="application/vnd.apache.arrow.file",
        row_count=rows,
        byte_length=rows * 120,
    )
