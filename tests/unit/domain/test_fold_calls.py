"""What open work leaves for its next holder: recorded calls, and children that were asked for."""

from typing import Any

import pytest

from noetl.domain.events import (
    CallDone,
    CallFailed,
    CallPartial,
    ChildStarted,
    CommandCancelled,
    CommandIssued,
    StepEntered,
    StepExited,
)
from noetl.domain.events.values import Result
from noetl.domain.execution.state import Child
from noetl.domain.work import Call
from noetl.kernel.ids import CommandId, ExecutionId, StepName
from noetl.testing.given import Placed, at, given
from noetl.testing.histories import execution_ids
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    COMMAND,
    FAILURE,
    STAGE,
    STEP,
    claimed,
    completed,
    failed,
    issued,
    loop_done,
    loop_started,
    stage_opened,
)

(EXECUTION,) = execution_ids(1)
OK = Result(status="ok", context={"id": 7})
CHILD, OTHER_CHILD = ExecutionId("100"), ExecutionId("200")
ENDS = [completed(), failed(), at(CommandCancelled(), command_id=COMMAND)]


def call(task: str | None = "pay", command: CommandId = COMMAND, **fields: Any) -> Placed:
    return at(CallDone(step=STEP, result=OK, task=task, **fields), command_id=command)


def cycle(step: str, visit: int, rest: str = "0/book/1") -> str:
    return f"{EXECUTION}/{step}/{visit}/{rest}"


def child(name: str, execution: ExecutionId = CHILD, command: CommandId | None = COMMAND) -> Placed:
    started = ChildStarted(cycle=name, child_execution_id=execution, path="examples/booking")
    return at(started, command_id=command) if command is not None else at(started, stage_id=STAGE)


def test_the_calls_of_an_open_command_are_kept_in_order() -> None:
    error = CallFailed(step=STEP, error=FAILURE, task="book", run=2, tries=3, effect="repeated")
    story = given(issued()).when(
        call(writes={"ctx.total": 1}, effect="fired", duration_ms=41),
        at(error, command_id=COMMAND),
    )
    assert story.state.calls == {
        COMMAND: [
            Call(
                task="pay", result=OK, writes={"ctx.total": 1}, effect="fired", duration_ms=41
            ),
            Call(task="book", run=2, error=FAILURE, tries=3, effect="repeated"),
        ]
    }  # fmt: skip
    assert story.state.ctx == {}  # its command writes them when it ends


def test_whoever_takes_the_command_over_finds_the_calls() -> None:
    story = given(issued(), claimed(ANNA, 1), call()).when(claimed(BERT, 2))
    assert [each.task for each in story.state.calls[COMMAND]] == ["pay"]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.event.TYPE)
def test_the_calls_go_with_their_command(end: Placed) -> None:
    other = CommandId("c2")
    story = given(issued(), issued(other), call(), call(command=other)).when(end)
    assert list(story.state.calls) == [other]


def test_a_call_that_names_no_task_is_counted_and_not_kept() -> None:
    story = given(issued()).when(call(task=None)).then("commands", COMMAND, calls=1)
    assert story.state.calls == {}


def test_a_part_of_a_result_is_counted_and_not_kept() -> None:
    part = CallPartial(step=STEP, chunk_index=0, has_more=True, result=OK)
    story = given(issued()).when(at(part, command_id=COMMAND)).then("commands", COMMAND, calls=1)
    assert story.state.calls == {}


def test_a_call_of_a_command_that_is_over_is_not_kept() -> None:
    story = given(issued(), completed()).when(call()).then("execution", unmatched_events=1)
    assert story.state.calls == {}


def test_a_call_outside_any_command_is_not_kept() -> None:
    assert given(issued()).when(call().event).state.calls == {}


def test_a_child_is_known_by_the_cycle_that_asked_for_it() -> None:
    again = cycle(STEP, 1, "0/book/2")
    story = given(issued()).when(child(cycle(STEP, 1)), child(again))
    mine = Child(CHILD, STEP, 1)
    assert story.state.children == {cycle(STEP, 1): mine, again: mine}
    story.then("execution", unmatched_events=0)


def test_a_child_that_no_open_work_asked_for_is_not_kept() -> None:
    story = given(issued(), completed()).when(child(cycle(STEP, 1)))
    assert story.state.children == {}
    story.then("execution", unmatched_events=1)


def test_the_children_of_a_visit_go_when_its_work_succeeded() -> None:
    other = CommandId("c2")
    story = given(
        StepEntered(step=STEP),
        issued(),
        at(CommandIssued(step=StepName("other"), tool="noop"), command_id=other),
    )
    story.when(child(cycle("other", 1), command=other), child(cycle(STEP, 1)))
    assert list(story.when(completed()).state.children) == [cycle("other", 1)]


def test_the_children_of_a_visit_that_failed_wait_for_its_retry() -> None:
    story = given(StepEntered(step=STEP), issued(), child(cycle(STEP, 1))).when(failed())
    assert list(story.state.children) == [cycle(STEP, 1)]
    story.when(StepExited(step=STEP, status="FAILED", error=FAILURE))
    assert story.when(StepEntered(step=STEP, visit=2)).state.children == {}


def test_the_children_of_a_loop_go_when_it_is_done() -> None:
    story = given(StepEntered(step=STEP), loop_started(collection_size=2), stage_opened())
    story.when(
        child(cycle(STEP, 1, "0/book/1"), command=None),
        child(cycle(STEP, 1, "1/book/1"), OTHER_CHILD, command=None),
    )
    assert len(story.state.children) == 2
    assert story.when(loop_done(2)).state.children == {}


def test_children_stay_when_their_command_is_called_back() -> None:
    """Whoever cancels an execution cancels its children: it must find them after a crash, too."""
    story = given(issued(), child(cycle(STEP, 1)))
    story.when(at(CommandCancelled(), command_id=COMMAND))
    assert list(story.state.children) == [cycle(STEP, 1)]


def test_a_retry_adopts_the_calls_that_had_succeeded() -> None:
    error = CallFailed(step=STEP, error=FAILURE, task="book")
    story = given(StepEntered(step=STEP), issued(), call(), at(error, command_id=COMMAND))
    story.when(failed(), StepExited(step=STEP, status="FAILED", error=FAILURE))
    assert story.state.calls == {}

    second = CommandId("c2")
    story.when(issued(second, attempt=2))

    assert [each.task for each in story.state.calls[second]] == ["pay"]


def test_a_new_visit_adopts_nothing() -> None:
    story = given(StepEntered(step=STEP), issued(), call(), failed())
    story.when(StepExited(step=STEP, status="FAILED", error=FAILURE))
    story.when(StepEntered(step=STEP, visit=2), issued(CommandId("c2"), visit=2))
    assert story.state.calls == {}
    assert story.state.kept_calls == {}
