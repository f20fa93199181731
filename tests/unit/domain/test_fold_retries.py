"""What a beginning fixes, what a cancellation clears, and what a person's retry opens again."""

import pytest

from noetl.domain.events import (
    Event,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionRetried,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    StepEntered,
)
from noetl.domain.events.values import Result
from noetl.domain.execution.state import RunState, StepState
from noetl.kernel.ids import StepName
from noetl.testing.given import Placed, Story, given
from tests.unit.domain.happenings import (
    FAILURE,
    LOOP,
    STARTED,
    STEP,
    completed,
    dispatched,
    failed,
    issued,
    left,
    loop_started,
    stage_opened,
    stored_result,
)

A, B = StepName("a"), StepName("b")
AGAIN = ExecutionRetried(step=STEP, visit=1, attempt=2, reason="the disk is empty again")


def failed_story() -> Story:
    return given(
        STARTED,
        StepEntered(step=STEP),
        issued(),
        failed(),
        left(status="FAILED", error=FAILURE),
        PlaybookFailed(step=STEP, error=FAILURE),
    )


def test_what_the_request_brought_is_fixed_at_the_beginning() -> None:
    first = PlaybookInitialized(
        path="examples/orders",
        playbook_digest="5f" * 32,
        workload={"region": "eu"},
        payload={"limit": 5},
        env={"STAGE": "test"},
        job_uuid="j1",
    )
    run = RunState(
        workload={"region": "eu"}, payload={"limit": 5}, env={"STAGE": "test"}, job_uuid="j1"
    )
    story = given(first)
    assert story.state.run == run

    story.when(STARTED).then("execution", unmatched_events=1)

    assert story.state.run == run


def test_now_is_the_time_of_the_newest_event() -> None:
    assert given().state.now is None
    story = given(STARTED)
    assert story.state.now == story.events[0].envelope.event_time
    story.when(completed())  # unmatched, and heard all the same
    assert story.state.now == story.events[1].envelope.event_time


def test_a_cancellation_ends_what_is_open_and_keeps_what_waits() -> None:
    story = given(STARTED, left(B, arcs=(A,)), StepEntered(step=STEP), loop_started())
    story.when(stage_opened(), dispatched(cursor={"first": 0, "rows": 5}))

    story.when(ExecutionCancelled(reason="enough"))

    assert story.state.open_steps == []
    assert story.state.tokens == {A: [B]}  # it begins when the execution is retried
    assert story.state.loop_work == {}
    assert story.state.steps[STEP] == StepState(
        visit=1,
        status="CANCELLED",
        entered_event_id=story.event_id(3),
        exited_event_id=story.event_id(7),
    )
    assert story.state.steps[B].status == "COMPLETED"
    assert LOOP in story.state.loops  # its rows are told by whoever ends them


def test_a_cancellation_that_came_too_late_clears_nothing() -> None:
    story = given(STARTED, PlaybookCompleted(), left(B, arcs=(A,)), StepEntered(step=STEP))
    story.when(ExecutionCancelled())
    assert story.state.open_steps == [STEP]
    assert story.state.tokens == {A: [B]}


def test_a_retry_opens_the_failed_visit_again_at_a_higher_try() -> None:
    story = failed_story().when(AGAIN)

    assert story.state.steps[STEP] == StepState(
        visit=1, status="RUNNING", attempt=2, entered_event_id=story.event_id(2)
    )
    assert story.state.open_steps == [STEP]
    assert story.state.tokens == {}
    assert story.state.failed is None
    story.then(
        "execution",
        status="RUNNING",
        ended_at=None,
        terminal_event_id=None,
        error=None,
        error_kind=None,
        unmatched_events=0,
        last_event_id=story.event_id(7),
    )


def test_a_retried_step_can_end_again_and_so_can_its_execution() -> None:
    story = failed_story().when(AGAIN, issued(attempt=2), completed(result=stored_result("rows")))
    story.when(left(arcs=(A,)), PlaybookCompleted(step=STEP))

    assert story.state.results == {STEP: stored_result("rows")}
    assert story.state.tokens == {A: [STEP]}
    assert story.state.open_steps == []
    story.then(
        "execution",
        status="COMPLETED",
        terminal_event_id=story.event_id(11),
        ended_at=story.events[10].envelope.event_time,
        unmatched_events=0,
    )


def test_what_waited_beside_the_failure_goes_on_with_the_retry() -> None:
    story = given(STARTED, left(B, arcs=(A,)), StepEntered(step=STEP))
    story.when(left(status="FAILED", error=FAILURE), PlaybookFailed(error=FAILURE))
    story.when(AGAIN)
    assert story.state.tokens == {A: [B]}
    assert story.state.open_steps == [STEP]


@pytest.mark.parametrize("visit", [2, 7])
def test_a_retry_at_another_visit_is_a_token_to_start_anew(visit: int) -> None:
    story = failed_story().when(ExecutionRetried(step=STEP, visit=visit))

    assert story.state.tokens == {STEP: [STEP]}
    assert story.state.open_steps == []
    assert story.state.steps[STEP].status == "FAILED"

    story.when(StepEntered(step=STEP, visit=2, arrived_from=(STEP,)))

    assert story.state.tokens == {}
    assert story.state.open_steps == [STEP]
    assert story.state.steps[STEP].attempt == 1


def test_a_retry_may_name_a_step_that_never_ran() -> None:
    story = failed_story().when(ExecutionRetried(step=A, visit=1))
    assert story.state.tokens == {A: [A]}
    assert A not in story.state.steps


@pytest.mark.parametrize(
    "end", [PlaybookCompleted(), PlaybookFailed(error=FAILURE), ExecutionCancelled()]
)
def test_any_end_can_be_retried(end: Event) -> None:
    story = given(STARTED, StepEntered(step=STEP), left(), end).when(AGAIN)
    story.then("execution", status="RUNNING", unmatched_events=0)
    assert story.state.open_steps == [STEP]
    assert story.state.ended_in is None


def test_a_retry_forgets_the_result_of_the_end_it_takes_back() -> None:
    story = given(STARTED, StepEntered(step=STEP), left())
    story.when(PlaybookCompleted(step=STEP, result=stored_result("out")), AGAIN)
    story.then("execution", result_ref=None)
    story.when(PlaybookFailed(error=FAILURE)).then("execution", status="FAILED", result_ref=None)


def test_a_cancelled_visit_goes_on_with_the_retry() -> None:
    story = given(STARTED, StepEntered(step=STEP), ExecutionCancelled()).when(AGAIN)
    assert story.state.open_steps == [STEP]
    assert story.state.steps[STEP].exited_event_id is None


def test_a_step_that_was_still_open_is_open_once() -> None:
    story = given(STARTED, StepEntered(step=STEP), PlaybookFailed(error=FAILURE)).when(AGAIN)
    assert story.state.open_steps == [STEP]
    assert story.when(left()).state.open_steps == []


def test_a_retry_lets_go_of_what_the_failed_try_came_to() -> None:
    story = given(STARTED, StepEntered(step=STEP), issued(), completed(result=Result(status="ok")))
    story.when(PlaybookFailed(error=FAILURE), AGAIN)
    assert story.state.steps[STEP].outcome is None


@pytest.mark.parametrize(
    "running", [[], [STARTED], [STARTED, ExecutionPaused()]], ids=["pending", "running", "paused"]
)
def test_a_retry_of_what_has_not_ended_changes_nothing(running: list[Event | Placed]) -> None:
    story = given(*running, StepEntered(step=STEP), left(arcs=(A,)))
    status = story.state.execution.status

    story.when(AGAIN).then("execution", status=status, unmatched_events=1)

    assert story.state.open_steps == []
    assert story.state.tokens == {A: [STEP]}
    assert story.state.steps[STEP].attempt == 1
