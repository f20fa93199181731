"""A state with something in every field comes back from its bytes as it was."""

import msgspec

from noetl.domain.events import (
    CallDone,
    CallPartial,
    ChildStarted,
    CommandCancelled,
    CommandIssued,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameStarted,
    LoopDone,
    LoopStarted,
    ShardEnqueued,
    ShardFailed,
    StageEngine,
    StageOpened,
    StepEntered,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Result
from noetl.domain.execution.state import CursorWork, ExecutionState, LoopWork, RunState, Shard
from noetl.kernel import canonical_json
from noetl.kernel.ids import CommandId, ExecutionId, FrameId, LoopId, StageId, StepName
from noetl.testing.given import Story, at, given
from tests.unit.domain.happenings import (
    ANNA,
    COMMAND,
    FAILURE,
    LOOP,
    SOON,
    STAGE,
    STARTED,
    STEP,
    committed,
    dispatched,
    failed,
    in_frame,
    issued,
    left,
    loop_started,
    order,
    reference,
    stage_opened,
    stored_result,
)

A, B = StepName("größe/β"), StepName("b")
OTHER = CommandId("c2")
CLAIMING = LoopId("rows@1")
FANNED = LoopId("shards@1")
SECOND, THIRD = FrameId("f2"), FrameId("f3")
CHUNK = CallPartial(
    step=STEP, chunk_index=0, has_more=True, result=stored_result("page"), task="pages"
)


FIRST = msgspec.structs.replace(
    STARTED,
    workload={"é": [1, 2.5]},
    payload={"n": None},
    env={"A": "b"},
    job_uuid="j1",
    parent_stage_id=StageId("s0"),
)


def busy_story() -> Story:
    called = CallDone(step=STEP, task="pay", result=stored_result("call"), effect="fired")
    child = ChildStarted(cycle="1/a/1/0/t/1", child_execution_id=ExecutionId("7"), path="p")
    story = given(
        FIRST,
        left(A, arcs=(B,), result=stored_result("rows"), writes={"a.b": {"": None, "c.d": -0.5}}),
        left(B, status="FAILED", error=FAILURE),
        StepEntered(step=STEP),
        issued(),
        failed(result=Result(status="ok", context={"n": 1})),
        issued(),
        at(called, command_id=COMMAND),
        at(child, command_id=COMMAND),
        at(CHUNK, command_id=COMMAND),
        at(CommandIssued(step=A, tool="noop"), command_id=OTHER),
        at(called, command_id=OTHER),
        at(CommandCancelled(), command_id=OTHER),
        order(attributes={"total": 1e16}),
    )
    lost_loops(story)
    claiming_loop(story)
    fanned_out_loop(story)
    return story.when(
        loop_started(
            collection_size=9,
            collection=["x", None],
            collection_ref=reference("in"),
            attempt=2,
        ),
        stage_opened(frame_policy={"max_rows": 4}),
        at(StageEngine(engine="spark", session_id="s", tag="t", slots=2), stage_id=STAGE),
        dispatched(cursor={"first": 0, "rows": 4}),
        dispatched(frame=SECOND, ordinal=1, cursor={"first": 4, "rows": 4}),
        dispatched(frame=THIRD, ordinal=2, cursor={"first": 8, "rows": 1}),
        dispatched(frame=FrameId("f4"), ordinal=7, cursor={"first": 20, "rows": 2}),
        committed(
            row_count=3,
            failed_rows=1,
            broken_rows=1,
            row_error=FAILURE,
            outcomes=[{"value": 1}, "ü"],
            writes={"a.c": [1]},
            output_ref=reference("out"),
            metrics={"duration_ms": 5},
        ),
        in_frame(FrameFailed(error=FAILURE), SECOND),
        in_frame(FrameAbandoned(previous_owner=ANNA, previous_attempts=1, handed_back=True), THIRD),
    )


def lost_loops(story: Story) -> None:
    """One whose visit is tried again, and one that waits for that."""
    for step in (STEP, B):
        loop, stage = LoopId(f"{step}@0"), StageId(f"of {step}")
        opened = StageOpened(stage_kind="loop", step=step, loop_id=loop)
        story.when(
            LoopStarted(loop_id=loop, step=step, mode="parallel"), at(opened, stage_id=stage)
        )
        for first in (20, 30):
            frame = FrameId(f"{step} {first}")
            out = FrameDispatched(
                ordinal=first, worker_id=ANNA, lease_until=SOON, cursor={"first": first, "rows": 2}
            )
            story.when(at(out, stage_id=stage, frame_id=frame))
            story.when(at(FrameFailed(error=FAILURE), stage_id=stage, frame_id=frame))
        stats = LoopStats(total=40)
        story.when(LoopDone(loop_id=loop, step=step, status="failed", stats=stats, error=FAILURE))


def claiming_loop(story: Story) -> None:
    """Over a cursor: a frame came back, one found nothing, and one has claimed rows."""
    stage = StageId("of rows")
    opened = StageOpened(stage_kind="loop", step=A, loop_id=CLAIMING)
    story.when(LoopStarted(loop_id=CLAIMING, step=A, mode="cursor"), at(opened, stage_id=stage))
    for ordinal, rows in enumerate((["a"], ["b"], [])):
        place = {"stage_id": stage, "frame_id": FrameId(f"claim {ordinal}")}
        out = FrameDispatched(ordinal=ordinal, worker_id=ANNA, lease_until=SOON)
        story.when(at(out, **place))
        if rows:
            cursor = {"first": ordinal, "rows": 1}
            claim = FrameStarted(worker_id=ANNA, transaction_id="t", rows=rows, cursor=cursor)
            story.when(at(claim, **place))
        if ordinal != 1:
            story.when(at(FrameCommitted(worker_id=ANNA, row_count=len(rows)), **place))


def fanned_out_loop(story: Story) -> None:
    """One shard is tried again, and one has failed for good."""
    stage = StageId("of shards")
    opened = StageOpened(stage_kind="fanout", step=A, loop_id=FANNED)
    story.when(LoopStarted(loop_id=FANNED, step=A, mode="fanout"), at(opened, stage_id=stage))
    for number in (0, 1):
        place = {"stage_id": stage, "frame_id": FrameId(f"shard {number}")}
        out = ShardEnqueued(
            loop_id=FANNED, shard_id=str(number), iter_index=number, worker_id=ANNA, attempt=1
        )
        is_final = number == 1
        failure = ShardFailed(loop_id=FANNED, shard_id=str(number), error=FAILURE, final=is_final)
        story.when(at(out, **place), at(failure, **place))


def test_every_field_has_something_in_it() -> None:
    state = busy_story().state
    assert untouched(state, ExecutionState()) == set()
    assert untouched(state.run, RunState()) == {"catalog_id"}  # comes with the envelope
    empty = LoopWork(loop_id=LOOP, step=STEP, visit=1, mode="parallel", total=9)
    same = {"loop_id", "step", "visit", "mode", "total", "cursor", "shards", "has_dataset"}
    assert untouched(state.loop_work[LOOP], empty) == same
    assert untouched(state.loop_work[CLAIMING].cursor, CursorWork()) == set()
    assert [*state.loop_work[FANNED].shards.values()] == [Shard(attempt=1, has_failed=True)]


def test_it_comes_back_from_its_bytes_as_it_was() -> None:
    state = busy_story().state
    frozen = canonical_json.encode(state)

    thawed = msgspec.json.decode(frozen, type=ExecutionState)

    assert thawed == state
    assert canonical_json.encode(thawed) == frozen


def untouched(value: msgspec.Struct, empty: msgspec.Struct) -> set[str]:
    before, after = msgspec.structs.asdict(empty), msgspec.structs.asdict(value)
    return {name for name in before if before[name] == after[name]}
