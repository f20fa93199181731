"""A golden history of chunks: passed on one by one, made again by a second holder; and of a stage
that belongs to another one."""

from collections.abc import Iterator

from noetl.domain.events import (
    CallPartial,
    ChunkPassed,
    CommandClaimed,
    CommandCompleted,
    CommandIssued,
    CommandStarted,
    FanoutStarted,
    LoopStarted,
    PlaybookInitialized,
    ShardEnqueued,
    StageOpened,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.values import Result
from noetl.kernel.ids import CommandId, FrameId, StageId, StepName, WorkerId, loop_id
from noetl.testing.histories import (
    PLAYBOOK_DIGEST,
    WORKER,
    History,
    command_cycle,
    execution_ids,
    frame_output,
)

PAGES, STORE, EACH = StepName("pages"), StepName("store"), StepName("each")
LOOP = loop_id(EACH, 1)
CHUNKS = 3
OTHER_WORKER = WorkerId("worker-2")


def chunks(history: History) -> Iterator[Draft]:
    """Three chunks: the second is told of twice, the third is still waiting when the step fails."""
    (parent,) = execution_ids(1, node=7)
    first = PlaybookInitialized(
        path="examples/pages",
        playbook_digest=PLAYBOOK_DIGEST,
        parent_execution_id=parent,
        parent_stage_id=StageId("264905529761996800"),
    )
    yield history.draft(first)
    yield history.draft(StepEntered(step=PAGES))
    command = CommandId(f"{history.execution}/{PAGES}/1/0/1")
    yield history.draft(CommandIssued(step=PAGES, tool="python"), command_id=command)
    yield from _claimed(history, command, WORKER, 1)
    yield _chunk(history, command, 0)
    yield _passed(history, 0)
    yield from command_cycle(history, STORE)
    yield _chunk(history, command, 1)
    yield from _claimed(history, command, OTHER_WORKER, 2)
    yield _chunk(history, command, 0)
    yield _chunk(history, command, 1)
    yield _passed(history, 1)
    yield _passed(history, 1)
    yield _chunk(history, command, 2)
    done = CommandCompleted(claim=2, result=Result(status="ok", context={"chunks": 3}))
    yield history.draft(done, command_id=command)
    yield history.draft(StepExited(step=PAGES, status="FAILED", arcs=(EACH,), handled=True))
    yield from _shards(history)


def _claimed(history: History, command: CommandId, worker: WorkerId, claim: int) -> Iterator[Draft]:
    lease = history.lease_end()
    claimed = CommandClaimed(worker_id=worker, claim=claim, lease_until=lease)
    yield history.draft(claimed, command_id=command)
    yield history.draft(CommandStarted(worker_id=worker, claim=claim), command_id=command)


def _chunk(history: History, command: CommandId, index: int) -> Draft:
    """The first is small enough for its event."""
    small = Result(status="ok", context={"rows": [{"n": 1}, {"n": 2}]})
    stored = Result(status="ok", reference=frame_output(history.execution, PAGES, index, 1000))
    event = CallPartial(
        step=PAGES,
        chunk_index=index,
        has_more=index < CHUNKS - 1,
        result=stored if index else small,
        task="pages",
    )
    return history.draft(event, command_id=command)


def _passed(history: History, index: int) -> Draft:
    passed = ChunkPassed(
        step=PAGES, chunk_index=index, task="pages", arcs=(STORE,), writes={"page": index}
    )
    return history.draft(passed)


def _shards(history: History) -> Iterator[Draft]:
    """A stage below the one that asked for this execution; its second shard follows its first."""
    stage = StageId(history.new_id())
    yield history.draft(StepEntered(step=EACH, arrived_from=(PAGES,)))
    started = LoopStarted(
        loop_id=LOOP, step=EACH, mode="fanout", collection_size=2, collection=["a", "b"]
    )
    yield history.draft(started)
    yield history.draft(FanoutStarted(loop_id=LOOP, step=EACH, total_shards=2))
    opened = StageOpened(
        stage_kind="fanout",
        step=EACH,
        loop_id=LOOP,
        parent_stage_id=StageId("264905529761996800"),
    )
    yield history.draft(opened, stage_id=stage)
    before: FrameId | None = None
    for index in range(2):
        frame = FrameId(history.new_id())
        shard = ShardEnqueued(
            loop_id=LOOP,
            shard_id=str(index),
            iter_index=index,
            worker_id=WORKER,
            lease_until=history.lease_end(),
            attempt=1,
            parent_frame_id=before,
        )
        yield history.draft(shard, stage_id=stage, frame_id=frame)
        before = frame
