"""A golden history of work that is handed back: by a worker that leaves in the middle of it."""

from collections.abc import Iterator

from noetl.domain.events import (
    CommandClaimed,
    CommandCompleted,
    CommandIssued,
    CommandReleased,
    CommandStarted,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameStarted,
    LoopStarted,
    PlaybookInitialized,
    StageOpened,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.values import Result
from noetl.kernel.ids import CommandId, FrameId, StageId, StepName, WorkerId, loop_id
from noetl.testing.histories import PLAYBOOK_DIGEST, WORKER, History

FETCH, EACH = StepName("fetch"), StepName("each")
LOOP = loop_id(EACH, 1)
NEXT_WORKER = WorkerId("worker-2")


def handed_back(history: History) -> Iterator[Draft]:
    """What the first holder says after it has left changes nothing."""
    first = PlaybookInitialized(path="examples/leaving", playbook_digest=PLAYBOOK_DIGEST)
    yield history.draft(first)
    yield history.draft(StepEntered(step=FETCH))
    command = CommandId(f"{history.execution}/{FETCH}/1/0/1")
    issued = CommandIssued(step=FETCH, tool="http", attempts_max=3)
    yield history.draft(issued, command_id=command)
    yield from _claimed(history, command, WORKER, 1)
    for _ in range(2):
        released = CommandReleased(worker_id=WORKER, claim=1)
        yield history.draft(released, command_id=command)
    yield from _claimed(history, command, NEXT_WORKER, 2)
    done = CommandCompleted(claim=2, result=Result(status="ok"))
    yield history.draft(done, command_id=command)
    yield history.draft(StepExited(step=FETCH, status="COMPLETED", arcs=(EACH,)))
    yield from _rows(history)


def _claimed(history: History, command: CommandId, worker: WorkerId, claim: int) -> Iterator[Draft]:
    lease = history.lease_end()
    claimed = CommandClaimed(worker_id=worker, claim=claim, lease_until=lease)
    yield history.draft(claimed, command_id=command)
    yield history.draft(CommandStarted(worker_id=worker, claim=claim), command_id=command)


def _rows(history: History) -> Iterator[Draft]:
    """A frame that was handed back is open when the history ends; another one began no row."""
    stage, frame = StageId(history.new_id()), FrameId(history.new_id())
    yield history.draft(StepEntered(step=EACH, arrived_from=(FETCH,)))
    items = ["a", "b", "c"]
    started = LoopStarted(
        loop_id=LOOP, step=EACH, mode="parallel", collection_size=3, collection=items
    )
    yield history.draft(started)
    opened = StageOpened(stage_kind="loop", step=EACH, loop_id=LOOP)
    yield history.draft(opened, stage_id=stage)
    for attempt, worker in enumerate((WORKER, NEXT_WORKER), start=1):
        yield from _dispatched(history, stage, frame, (worker, attempt))
        back = FrameAbandoned(previous_owner=worker, previous_attempts=attempt, handed_back=True)
        yield history.draft(back, stage_id=stage, frame_id=frame)
    other = FrameId(history.new_id())
    yield from _dispatched(history, stage, other, (WORKER, 1), first=2)
    committed = FrameCommitted(worker_id=WORKER, row_count=0)
    yield history.draft(committed, stage_id=stage, frame_id=other)


def _dispatched(
    history: History, stage: StageId, frame: FrameId, held: tuple[WorkerId, int], first: int = 0
) -> Iterator[Draft]:
    worker, attempt = held
    out = FrameDispatched(
        ordinal=first,
        worker_id=worker,
        lease_until=history.lease_end(),
        attempt=attempt,
        attempts_max=10,
        cursor={"first": first, "rows": 2 if first == 0 else 1},
    )
    yield history.draft(out, stage_id=stage, frame_id=frame)
    started = FrameStarted(worker_id=worker)
    yield history.draft(started, stage_id=stage, frame_id=frame)
