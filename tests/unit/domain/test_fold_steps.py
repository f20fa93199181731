"""What facts about steps make true for those who decide: tokens, names, results, failures."""

import copy

from noetl.domain.events import CommandCancelled, StepEntered, StepSkipped
from noetl.domain.events.values import Failure, Result
from noetl.domain.execution.state import FailedStep, StepOutcome
from noetl.domain.execution.steps import UNEXPLAINED
from noetl.kernel.ids import StepName
from noetl.testing.given import at, given
from tests.unit.domain.happenings import (
    COMMAND,
    FAILURE,
    LOOP,
    STARTED,
    STEP,
    completed,
    failed,
    issued,
    left,
    loop_done,
    loop_started,
    stored_result,
)

A, B, JOIN = StepName("a"), StepName("b"), StepName("join")
OK = Result(status="ok", context={"rows": 3})


def test_a_taken_arc_puts_a_token_on_its_target() -> None:
    story = given(STARTED, StepEntered(step=STEP)).when(left(arcs=(A, B)))
    assert story.state.tokens == {A: [STEP], B: [STEP]}
    assert story.state.open_steps == []


def test_entering_a_step_takes_the_token_away() -> None:
    story = given(left(arcs=(A, B))).when(StepEntered(step=A, arrived_from=(STEP,)))
    assert story.state.tokens == {B: [STEP]}
    assert story.state.open_steps == [A]


def test_a_step_that_takes_one_of_its_tokens_leaves_the_others() -> None:
    story = given(left(A, arcs=(STEP,)), left(B, arcs=(STEP,)), left(A, visit=2, arcs=(STEP,)))
    assert story.state.tokens == {STEP: [A, B, A]}

    story.when(StepEntered(step=STEP, arrived_from=(A,)))

    assert story.state.tokens == {STEP: [B, A]}


def test_a_join_takes_all_the_tokens_it_names() -> None:
    story = given(left(A, arcs=(JOIN,)), left(B, arcs=(JOIN,)))
    story.when(StepEntered(step=JOIN, arrived_from=(A, B)))
    assert story.state.tokens == {}


def test_a_step_may_be_entered_without_a_token() -> None:
    story = given(STARTED, StepEntered(step=STEP, arrived_from=(A,)))
    assert story.state.tokens == {}
    story.when(left(A, arcs=(B,)), StepEntered(step=B, arrived_from=(JOIN,)))
    assert story.state.tokens == {B: [A]}


def test_an_entry_that_came_too_late_takes_nothing() -> None:
    story = given(StepEntered(step=A, visit=2), left(arcs=(A,)))
    story.when(StepEntered(step=A, visit=2, arrived_from=(STEP,)))
    assert story.state.tokens == {A: [STEP]}
    story.then("execution", unmatched_events=1)


def test_a_skipped_step_passes_its_token_on() -> None:
    story = given(left(arcs=(A,))).when(StepSkipped(step=A, arcs=(B,)))
    assert story.state.tokens == {B: [A]}


def test_a_second_exit_puts_no_second_token_and_writes_nothing() -> None:
    story = given(StepEntered(step=STEP), left(arcs=(A,), writes={"page": 1}))
    story.when(left(arcs=(A, B), writes={"page": 2}, result=OK), StepSkipped(step=STEP, arcs=(B,)))
    assert story.state.tokens == {A: [STEP]}
    assert story.state.ctx == {"page": 1}
    assert story.state.results == {}


def test_open_steps_are_named_in_the_order_of_entering() -> None:
    story = given(StepEntered(step=B), StepEntered(step=A), StepEntered(step=JOIN))
    assert story.state.open_steps == [B, A, JOIN]
    story.when(left(A))
    assert story.state.open_steps == [B, JOIN]
    story.when(StepEntered(step=B, visit=2))
    assert story.state.open_steps == [B, JOIN]


def test_a_step_writes_names_dotted_ones_too() -> None:
    story = given(STARTED).when(left(writes={"order.id": 7, "page": 1}))
    story.when(left(A, writes={"order.paid": True, "page": 2}))
    assert story.state.ctx == {"order": {"id": 7, "paid": True}, "page": 2}


def test_names_and_results_that_someone_holds_stay_as_they_were() -> None:
    story = given(left(writes={"order.id": 7}, result=OK))
    ctx, results = story.state.ctx, story.state.results
    held = copy.deepcopy((ctx, results))

    story.when(left(A, writes={"order.id": 8}, result=OK), left(visit=2, result=stored_result("x")))

    assert (ctx, results) == held
    assert story.state.ctx == {"order": {"id": 8}}
    assert story.state.results == {STEP: stored_result("x"), A: OK}


def test_what_a_command_came_to_waits_at_its_step_until_the_exit() -> None:
    story = given(StepEntered(step=STEP), issued()).when(completed(result=OK, writes={"page": 2}))
    assert story.state.steps[STEP].outcome == StepOutcome(result=OK)
    assert story.state.ctx == {"page": 2}
    assert story.state.results == {}

    story.when(left())

    assert story.state.steps[STEP].outcome is None
    assert story.state.results == {STEP: OK}


def test_a_failed_command_brings_its_error_and_what_did_succeed() -> None:
    story = given(StepEntered(step=STEP), issued()).when(failed(result=OK, writes={"page": 2}))
    assert story.state.steps[STEP].outcome == StepOutcome(result=OK, error=FAILURE)
    assert story.state.ctx == {"page": 2}

    story.when(left(status="FAILED", error=FAILURE, handled=True, arcs=(A,)))

    assert story.state.results == {STEP: OK}


def test_a_loop_brings_its_length_along() -> None:
    story = given(StepEntered(step=STEP), loop_started(collection_size=3))
    story.when(loop_done(3, result=OK, writes={"page": 3}))
    assert story.state.steps[STEP].outcome == StepOutcome(result=OK, loop_length=3)
    assert story.state.ctx == {"page": 3}


def test_a_loop_may_fail_its_step() -> None:
    story = given(StepEntered(step=STEP), loop_started())
    story.when(loop_done(0, status="failed", error=FAILURE))
    assert story.state.steps[STEP].outcome == StepOutcome(error=FAILURE, loop_length=0)


def test_the_exit_may_name_another_result_than_the_work_did() -> None:
    story = given(StepEntered(step=STEP), issued(), completed(result=OK))
    story.when(left(result=stored_result("other")))
    assert story.state.results == {STEP: stored_result("other")}


def test_a_step_that_brought_nothing_keeps_the_result_of_its_last_visit() -> None:
    story = given(StepEntered(step=STEP), left(result=OK))
    story.when(StepEntered(step=STEP, visit=2), left(visit=2))
    assert story.state.results == {STEP: OK}


def test_work_of_another_visit_says_nothing_of_this_one() -> None:
    story = given(StepEntered(step=STEP), issued(), StepEntered(step=STEP, visit=2))
    story.when(completed(result=OK))
    assert story.state.steps[STEP].outcome is None


def test_work_that_ends_after_its_step_says_nothing_any_more() -> None:
    story = given(StepEntered(step=STEP), issued(), left()).when(completed(result=OK))
    assert story.state.steps[STEP].outcome is None
    assert story.state.results == {}


def test_a_command_that_was_called_back_came_to_nothing() -> None:
    story = given(StepEntered(step=STEP), issued())
    story.when(at(CommandCancelled(), command_id=COMMAND))
    assert story.state.steps[STEP].outcome is None
    assert story.state.open_steps == [STEP]


def test_a_failure_that_no_arc_took_up_fails_the_execution() -> None:
    story = given(StepEntered(step=STEP)).when(left(status="FAILED", error=FAILURE))
    assert story.state.failed == FailedStep(STEP, FAILURE)


def test_the_first_failure_is_the_one_that_is_told() -> None:
    other = Failure(kind="http", message="later")
    story = given(left(status="FAILED", error=FAILURE), left(A, status="FAILED", error=other))
    assert story.state.failed == FailedStep(STEP, FAILURE)


def test_a_failure_without_words_is_a_failure() -> None:
    assert given(left(status="FAILED")).state.failed == FailedStep(STEP, UNEXPLAINED)


def test_a_failure_that_an_arc_took_up_fails_nothing() -> None:
    story = given(left(status="FAILED", error=FAILURE, handled=True, arcs=(A,)))
    assert story.state.failed is None
    assert story.state.tokens == {A: [STEP]}


def test_the_execution_ends_in_the_last_step_that_took_no_arc() -> None:
    story = given(left(arcs=(A, B)))
    assert story.state.ended_in is None
    assert story.when(left(A)).state.ended_in == A
    assert story.when(left(B)).state.ended_in == B


def test_a_branch_that_ends_quietly_says_nothing_of_the_whole() -> None:
    assert given(left(A), left(B, quiet=True)).state.ended_in == A


def test_a_skipped_step_is_not_where_the_execution_ends() -> None:
    assert given(StepSkipped(step=A)).state.ended_in is None


def test_a_loop_without_its_beginning_came_to_nothing() -> None:
    story = given(StepEntered(step=STEP)).when(loop_done(3, result=OK, writes={"page": 3}))
    assert story.state.steps[STEP].outcome is None
    assert story.state.ctx == {}
    assert LOOP not in story.state.loop_work
    story.then("execution", unmatched_events=1)
