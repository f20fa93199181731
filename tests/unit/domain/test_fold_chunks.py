"""Chunks of a growing result: they wait in order, and are known only once."""

from noetl.domain.events import CallPartial, ChunkPassed, StepEntered, StepExited
from noetl.domain.events.values import Result
from noetl.domain.execution.state import ChunkCount
from noetl.kernel.ids import StepName
from noetl.testing.given import Placed, at, given
from tests.unit.domain.happenings import COMMAND, STEP, completed, issued

NEXT = StepName("store")


def chunk(index: int, *, run: int = 1, visit: int = 1) -> Placed:
    event = CallPartial(
        step=STEP,
        chunk_index=index,
        has_more=True,
        result=Result(status="ok", context={"page": index}),
        task="pages",
        run=run,
        visit=visit,
    )
    return at(event, command_id=COMMAND)


def passed(index: int, *arcs: StepName, run: int = 1) -> ChunkPassed:
    return ChunkPassed(
        step=STEP, chunk_index=index, task="pages", run=run, arcs=arcs, writes={"page": index}
    )


ENTERED = (StepEntered(step=STEP), issued())


def test_chunks_wait_in_the_order_of_their_coming() -> None:
    state = given(*ENTERED).when(chunk(0), chunk(1)).state

    assert [each.index for each in state.chunks[STEP].waiting] == [0, 1]
    assert STEP not in state.results


def test_a_chunk_that_is_told_of_again_changes_nothing() -> None:
    state = given(*ENTERED, chunk(0), passed(0)).when(chunk(0), chunk(1)).state

    assert [each.index for each in state.chunks[STEP].waiting] == [1]


def test_a_chunk_without_those_before_it_is_not_kept() -> None:
    state = given(*ENTERED, chunk(0)).when(chunk(2)).state

    assert [each.index for each in state.chunks[STEP].waiting] == [0]


def test_a_later_run_of_the_task_begins_to_count_anew_and_an_earlier_one_is_over() -> None:
    state = given(*ENTERED, chunk(0), chunk(1)).when(chunk(0, run=2), chunk(2, run=1)).state

    assert [(each.run, each.index) for each in state.chunks[STEP].waiting] == [
        (1, 0),
        (1, 1),
        (2, 0),
    ]


def test_a_passed_chunk_stands_for_the_result_of_its_step_and_goes_to_its_targets() -> None:
    state = given(*ENTERED, chunk(0), chunk(1)).when(passed(0, NEXT)).state

    assert state.results[STEP].context == {"page": 0}
    assert state.tokens == {NEXT: [STEP]}
    assert state.ctx == {"page": 0}
    assert [each.index for each in state.chunks[STEP].waiting] == [1]
    assert state.open_steps == [STEP]


def test_chunks_are_passed_on_in_order_and_once() -> None:
    story = given(*ENTERED, chunk(0), chunk(1)).when(passed(1, NEXT))
    story.then("execution", unmatched_events=1)
    story.when(passed(0, NEXT), passed(0, NEXT)).then("execution", unmatched_events=2)

    assert story.state.tokens == {NEXT: [STEP]}


def test_chunks_that_were_not_passed_on_are_unknown_to_whoever_tries_the_step_again() -> None:
    failed = StepExited(step=STEP, status="FAILED")
    state = given(*ENTERED, chunk(0), chunk(1), chunk(2), passed(0), completed()).when(failed).state

    assert state.chunks[STEP].waiting == []
    assert state.chunks[STEP].counts == {"pages": ChunkCount(1, 1)}


def test_a_new_visit_has_chunks_of_its_own() -> None:
    story = given(*ENTERED, chunk(0), passed(0), completed(), StepExited(step=STEP, status="ok"))
    again = (StepEntered(step=STEP, visit=2), issued(visit=2))
    state = story.when(*again, chunk(0, visit=2)).state

    assert state.chunks[STEP].visit == 2
    assert [each.index for each in state.chunks[STEP].waiting] == [0]
