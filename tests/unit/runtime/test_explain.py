"""`explain` answers why an execution waits, from its state alone."""

import pytest

from noetl.decider.plan import Plan, plan_of
from noetl.domain.events import (
    CallPartial,
    ChildStarted,
    ExecutionCancelled,
    ExecutionPaused,
    FrameCommitted,
    PlaybookCompleted,
    PlaybookFailed,
    StageEngine,
    StepEntered,
    StepExited,
)
from noetl.domain.events.values import Result
from noetl.dsl.check import check
from noetl.kernel.ids import ExecutionId, FrameId, StepName
from noetl.kernel.instant import Instant
from noetl.runtime.explain import explain
from noetl.testing.given import Story, at, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    COMMAND,
    FAILURE,
    SOON,
    STAGE,
    STARTED,
    STEP,
    abandoned,
    called,
    claimed,
    dispatched,
    failed,
    in_frame,
    issued,
    loop_started,
    stage_opened,
)

NOW = Instant("2026-01-01T00:00:30.000000Z")
TOO_LATE = Instant("2026-01-01T00:03:00.000000Z")
TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fork, path: fork}
workflow:
  - step: load
    tool: {kind: noop}
    next:
      spec: {mode: inclusive}
      arcs: [{step: left}, {step: right}]
  - step: left
    tool: {kind: noop}
    next: [{step: meet}]
  - step: right
    tool: {kind: noop}
    next: [{step: meet}]
  - step: meet
    tool: {kind: noop}
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    checked = check(TEXT)
    assert checked.playbook is not None, checked.problems
    return plan_of(checked.playbook, checked.digest)


def entered(step: str, *sources: str) -> StepEntered:
    return StepEntered(
        step=StepName(step), arrived_from=tuple(StepName(source) for source in sources)
    )


def left(step: str, *arcs: str) -> StepExited:
    targets = tuple(StepName(arc) for arc in arcs)
    return StepExited(step=StepName(step), status="COMPLETED", arcs=targets)


def said(story: Story, plan: Plan, now: Instant = NOW) -> list[str]:
    return explain(story.state, plan, now)


def test_a_command_that_nobody_took_waits_for_a_slot(plan: Plan) -> None:
    story = given(STARTED, entered("load"), issued())
    assert said(story, plan) == [
        "Step load waits for a free slot of a worker since 2026-01-01T00:00:00Z."
    ]


def test_a_command_in_hand_is_told_with_its_worker_and_its_lease(plan: Plan) -> None:
    story = given(STARTED, entered("load"), issued(), claimed(ANNA, until=SOON))
    assert said(story, plan) == [
        "Step load runs on worker anna since 2026-01-01T00:00:00Z;"
        " its lease ends at 2026-01-01T00:02:00Z (in 90 s) unless it is renewed."
    ]


def test_a_lease_that_ran_out_says_so(plan: Plan) -> None:
    story = given(STARTED, entered("load"), issued(), claimed(), called(task="a"), claimed(BERT, 2))
    assert said(story, plan, TOO_LATE) == [
        "Step load runs on worker bert since 2026-01-01T00:00:00Z, its holder number 2,"
        " 1 call recorded; its lease ran out at 2026-01-01T00:02:00Z,"
        " so another worker may take it."
    ]


def test_a_pause_comes_first(plan: Plan) -> None:
    story = given(STARTED, entered("load"), issued(), ExecutionPaused())
    assert said(story, plan)[0] == (
        "It is paused since 2026-01-01T00:00:00Z: nothing new starts until it is resumed:"
        f" noetl executions resume {story.state.execution.execution_id}."
    )
    assert len(said(story, plan)) == 2


def test_a_loop_tells_its_rows_and_its_frames(plan: Plan) -> None:
    story = given(
        STARTED,
        entered("load"),
        loop_started(collection_size=100),
        stage_opened(),
        dispatched(cursor={"first": 0, "rows": 50}),
        dispatched(BERT, FrameId("f2"), ordinal=1, cursor={"first": 50, "rows": 20}),
        in_frame(FrameCommitted(worker_id=ANNA, row_count=50, failed_rows=2)),
    )
    assert said(story, plan) == [
        "Loop load has 50 of 100 rows done (2 of them failed);"
        " 1 frame out on bert, 30 rows not handed out yet.",
        "Its lease ends at 2026-01-01T00:02:00Z (in 90 s) unless it is renewed.",
    ]


def test_an_engine_that_has_not_come_yet_is_told_and_then_where_to_look(plan: Plan) -> None:
    story = given(
        STARTED,
        entered("load"),
        loop_started(collection_size=100),
        stage_opened(frame_policy={"engine": "spark"}),
    )
    assert said(story, plan)[-1] == (
        "Its rows are for spark, which is starting; local workers have them meanwhile."
    )
    job = StageEngine(engine="spark", session_id="s", tag="t", slots=2, ui_url="http://here:4040")
    story.when(at(job, stage_id=STAGE))
    assert said(story, plan)[-1] == "Its rows are for spark, 2 slots: http://here:4040."


def test_frames_of_lost_workers_are_told(plan: Plan) -> None:
    story = given(STARTED, entered("load"), loop_started(collection_size=100), stage_opened())
    story.when(dispatched(cursor={"first": 0, "rows": 100}))
    assert said(story, plan, TOO_LATE)[-1] == (
        "The lease of 1 frame ran out, so another worker may take them."
    )
    story.when(abandoned())
    assert said(story, plan) == [
        "Loop load has 0 of 100 rows done; no frame is out, 1 frame back from lost workers."
    ]


def test_a_join_names_what_it_waits_for(plan: Plan) -> None:
    story = given(STARTED, entered("load"), left("load", "left", "right"))
    story.when(entered("left", "load"), entered("right", "load"), left("left", "meet"))
    assert said(story, plan) == ["Join meet waits for right."]


def test_chunks_that_wait_are_told(plan: Plan) -> None:
    result = Result(status="ok")
    story = given(STARTED, entered("load"), issued(), claimed())
    for index in range(2):
        chunk = CallPartial(step=STEP, chunk_index=index, has_more=True, result=result, task="t")
        story.when(at(chunk, command_id=COMMAND))
    assert said(story, plan)[-1] == (
        "Step load has 2 chunks waiting: the next one is passed on when what the one before it"
        " started has ended."
    )


def test_a_child_is_named(plan: Plan) -> None:
    child = ChildStarted(cycle="1/load/1/0/ask/1", child_execution_id=ExecutionId("77"), path="x")
    asked = at(child, command_id=COMMAND)
    story = given(STARTED, entered("load"), issued(), claimed(), asked)
    assert said(story, plan)[-1] == (
        "Child execution 77, asked for by step load, runs or has just ended."
    )


def test_a_failure_that_waits_for_the_rest_is_told(plan: Plan) -> None:
    story = given(STARTED, entered("load"), issued(), claimed(), failed())
    story.when(StepExited(step=STEP, status="FAILED", error=FAILURE))
    assert said(story, plan) == [
        "Step load failed because of timeout: took too long."
        " When what still runs has ended, the execution fails."
    ]


def test_the_next_step_is_told(plan: Plan) -> None:
    assert said(given(STARTED, entered("load"), left("load", "left")), plan) == [
        "Step left is next."
    ]


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (PlaybookCompleted(step=STEP), "It completed after 0.0 s."),
        (ExecutionCancelled(reason="by hand"), "It was cancelled after 0.0 s: by hand."),
        (
            PlaybookFailed(error=FAILURE, step=STEP),
            "It failed after 0.0 s because of timeout: took too long.",
        ),
    ],
)
def test_an_end_is_told_and_nothing_else(
    plan: Plan, end: PlaybookCompleted | ExecutionCancelled | PlaybookFailed, sentence: str
) -> None:
    assert said(given(STARTED, issued(), end), plan) == [sentence]


def test_an_execution_of_which_nothing_is_open_says_that_too(plan: Plan) -> None:
    assert said(given(STARTED), plan) == [
        "Nothing is open: what follows is decided next, once a server runs."
    ]
    assert said(given(STARTED, entered("load")), plan) == [
        "What load should do is decided next, once a server runs."
    ]
