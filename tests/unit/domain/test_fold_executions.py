"""What facts about the execution and its steps make true."""

import pytest

from noetl.domain.events import (
    Event,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.execution.state import StepState
from noetl.kernel.ids import ExecutionId, StepName
from noetl.testing.given import given
from tests.unit.domain.happenings import (
    FAILURE,
    STARTED,
    STEP,
    called,
    claimed,
    completed,
    issued,
    stored_result,
    summary,
)

SEND = StepName("send")
TERMINAL: list[tuple[str, Event]] = [
    ("COMPLETED", PlaybookCompleted()),
    ("FAILED", PlaybookFailed(error=FAILURE)),
    ("CANCELLED", ExecutionCancelled(reason="enough")),
]


def test_the_first_event_says_what_runs_and_for_whom() -> None:
    first = PlaybookInitialized(
        path="examples/orders",
        playbook_digest="5f" * 32,
        playbook_version=3,
        parent_execution_id=ExecutionId("7"),
    )

    story = given(first)

    story.then(
        "execution",
        execution_id=story.execution,
        tenant_id="default",
        organization_id="default",
        status="RUNNING",
        path="examples/orders",
        playbook_version=3,
        playbook_digest="5f" * 32,
        parent_execution_id="7",
        event_count=1,
        last_event_id=story.event_id(1),
        last_event_type="playbook.initialized",
        started_at=story.events[0].envelope.event_time,
        ended_at=None,
    )
    assert story.state.stream_version == 1


def test_before_any_event_there_is_nothing() -> None:
    story = given()
    assert story.state.execution.status == "PENDING"
    assert story.state.stream_version == 0


def test_a_completed_execution_names_its_result() -> None:
    story = given(STARTED).when(PlaybookCompleted(step=SEND, result=stored_result("out")))
    story.then(
        "execution",
        status="COMPLETED",
        result_ref=summary("out"),
        ended_at=story.events[1].envelope.event_time,
        terminal_event_id=story.event_id(2),
    )


def test_a_failed_execution_says_why() -> None:
    given(STARTED).when(PlaybookFailed(error=FAILURE)).then(
        "execution", status="FAILED", error_kind="timeout", error="took too long"
    )


def test_a_cancelled_execution_says_why() -> None:
    given(STARTED).when(ExecutionCancelled(reason="enough")).then(
        "execution", status="CANCELLED", error="enough", error_kind=None
    )


@pytest.mark.parametrize(("status", "end"), TERMINAL, ids=[status for status, _ in TERMINAL])
@pytest.mark.parametrize(("other", "late"), TERMINAL, ids=[status for status, _ in TERMINAL])
def test_the_first_end_wins(status: str, end: Event, other: str, late: Event) -> None:
    story = given(STARTED, end)
    ended = story.row("execution")

    story.when(late)

    story.then("execution", status=status, unmatched_events=1)
    for field in ("ended_at", "terminal_event_id", "error", "error_kind", "result_ref"):
        assert story.row("execution")[field] == ended[field]


@pytest.mark.parametrize(("status", "end"), TERMINAL, ids=[status for status, _ in TERMINAL])
def test_late_events_never_take_an_end_back(status: str, end: Event) -> None:
    story = given(STARTED, end).when(
        ExecutionPaused(),
        ExecutionResumed(),
        STARTED,
        StepEntered(step=STEP),
        issued(),
        claimed(),
        called(),
        completed(),
        StepExited(step=STEP, status="ok"),
    )
    story.then("execution", status=status, event_count=11, unmatched_events=3)


def test_an_end_that_comes_before_the_beginning_still_is_the_end() -> None:
    given(ExecutionCancelled()).when(STARTED).then("execution", status="CANCELLED", started_at=None)


def test_a_paused_execution_can_go_on() -> None:
    story = given(STARTED, ExecutionPaused()).then("execution", status="PAUSED")
    story.when(ExecutionResumed()).then("execution", status="RUNNING", unmatched_events=0)


def test_the_last_step_that_was_touched_is_named() -> None:
    story = given(STARTED).then("execution", last_node_name=None)
    story.when(StepEntered(step=STEP)).then("execution", last_node_name=STEP)
    story.when(StepSkipped(step=SEND)).then("execution", last_node_name=SEND)
    story.when(called()).then("execution", last_node_name=STEP)


def test_a_step_is_entered_and_left() -> None:
    story = given(STARTED, StepEntered(step=STEP))
    assert story.state.steps[STEP] == StepState(
        visit=1, status="RUNNING", entered_event_id=story.event_id(2)
    )

    story.when(StepExited(step=STEP, status="ok", result=stored_result("rows")))

    assert story.state.steps[STEP] == StepState(
        visit=1,
        status="ok",
        entered_event_id=story.event_id(2),
        exited_event_id=story.event_id(3),
    )
    assert story.state.execution.payload_refs.count == 1


def test_only_the_newest_visit_of_a_step_is_kept() -> None:
    story = given(StepEntered(step=STEP), StepExited(step=STEP, status="ok"))
    story.when(StepEntered(step=STEP, visit=2))
    assert story.state.steps == {
        STEP: StepState(visit=2, status="RUNNING", entered_event_id=story.event_id(3))
    }


@pytest.mark.parametrize(
    "late",
    [
        StepEntered(step=STEP, visit=2),
        StepEntered(step=STEP, visit=1),
        StepExited(step=STEP, status="error", visit=1),
        StepSkipped(step=STEP, visit=1),
    ],
)
def test_what_is_said_of_an_earlier_visit_changes_nothing(late: Event) -> None:
    story = given(StepEntered(step=STEP, visit=2))
    before = dict(story.state.steps)
    story.when(late).then("execution", unmatched_events=1)
    assert story.state.steps == before


def test_the_first_exit_of_a_visit_counts() -> None:
    story = given(StepEntered(step=STEP), StepExited(step=STEP, status="ok"))
    story.when(StepExited(step=STEP, status="error")).then("execution", unmatched_events=1)
    assert story.state.steps[STEP].status == "ok"
    assert story.state.steps[STEP].exited_event_id == story.event_id(2)


def test_a_skipped_step_was_never_entered() -> None:
    story = given(StepSkipped(step=STEP, reason="when"))
    assert story.state.steps[STEP] == StepState(
        visit=1, status="SKIPPED", exited_event_id=story.event_id(1)
    )
    story.then("execution", unmatched_events=0)
