"""Lineage: from a step's result back to the start, by arcs, visits and frames."""

from itertools import chain

import pytest

from noetl.domain.events import (
    ExecutionRetried,
    PlaybookFailed,
    StepSkipped,
)
from noetl.kernel.errors import ExecutionNotFound, RequestInvalid
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.runtime.trace import Traces
from tests.unit.domain.happenings import (
    FAILURE,
    STARTED,
    called,
    claimed,
    committed,
    dispatched,
    issued,
    loop_done,
    loop_started,
    stage_opened,
)
from tests.unit.runtime.tracing import enter, kept, leave, log_of, traced, walked
from tests.unit.runtime.written import FIRST

STRAIGHT = (STARTED, enter("a"), leave("a", 1, "b"), enter("b", 1, "a"), leave("b", 1, "c"))


async def test_a_straight_line_leads_back_to_the_start() -> None:
    trace = await traced("c", *STRAIGHT, enter("c", 1, "b"))

    assert walked(trace) == [("c", 1, 0), ("b", 1, 1), ("a", 1, 2)]
    assert [visit.status for visit in trace.visits] == ["RUNNING", "COMPLETED", "COMPLETED"]
    assert trace.visits[0].entered_from == [{"step": "b", "visit": 1}]
    assert trace.visits[-1].entered_from == []
    assert (trace.total, trace.next_after) == (3, None)


async def test_what_came_after_the_step_is_no_part_of_it() -> None:
    assert walked(await traced("a", *STRAIGHT)) == [("a", 1, 0)]


async def test_a_join_comes_from_all_its_branches_and_their_start_once() -> None:
    trace = await traced(
        "join",
        STARTED,
        enter("a"),
        leave("a", 1, "b", "c"),
        enter("b", 1, "a"),
        enter("c", 1, "a"),
        leave("c", 1, "join"),
        leave("b", 1, "join"),
        enter("join", 1, "b", "c"),
    )

    assert walked(trace) == [("join", 1, 0), ("b", 1, 1), ("c", 1, 1), ("a", 1, 2)]


ROUNDS = (
    STARTED,
    enter("a"),
    leave("a", 1, "page"),
    enter("page", 1, "a"),
    leave("page", 1, "page"),
    enter("page", 2, "page"),
    leave("page", 2, "page"),
    enter("page", 3, "page"),
    leave("page", 3, "end"),
    enter("end", 1, "page"),
)


async def test_rounds_of_a_back_edge_are_told_apart_by_visit() -> None:
    trace = await traced("end", *ROUNDS)

    assert walked(trace) == [
        ("end", 1, 0),
        ("page", 3, 1),
        ("page", 2, 2),
        ("page", 1, 3),
        ("a", 1, 4),
    ]


async def test_an_earlier_visit_can_be_asked_for() -> None:
    assert walked(await traced("page", *ROUNDS, visit=2)) == [
        ("page", 2, 0),
        ("page", 1, 1),
        ("a", 1, 2),
    ]
    assert (await traced("page", *ROUNDS)).visit == 3


async def test_long_lineages_come_in_pages() -> None:
    first = await traced("end", *ROUNDS, limit=2)
    second = await traced("end", *ROUNDS, limit=2, after=2)
    last = await traced("end", *ROUNDS, limit=2, after=4)

    pages = [walked(first), walked(second), walked(last)]
    assert [*chain.from_iterable(pages)] == walked(await traced("end", *ROUNDS))
    assert [each.next_after for each in (first, second, last)] == [2, 4, None]
    assert [each.total for each in (first, second, last)] == [5, 5, 5]


async def test_a_skipped_step_is_part_of_the_way() -> None:
    skipped = StepSkipped(step=StepName("b"), arcs=(StepName("c"),))

    trace = await traced("c", STARTED, enter("a"), leave("a", 1, "b"), skipped, enter("c", 1, "b"))

    assert walked(trace) == [("c", 1, 0), ("b", 1, 1), ("a", 1, 2)]
    assert trace.visits[1].status == "SKIPPED"


async def test_a_retry_in_place_is_the_same_visit() -> None:
    trace = await traced(
        "b",
        STARTED,
        enter("a"),
        leave("a", 1, "b"),
        enter("b", 1, "a"),
        leave("b", status="FAILED", error=FAILURE),
        PlaybookFailed(error=FAILURE),
        ExecutionRetried(step=StepName("b"), visit=1, attempt=2),
        leave("b"),
    )

    assert walked(trace) == [("b", 1, 0), ("a", 1, 1)]
    assert (trace.visits[0].status, trace.visits[0].error) == ("COMPLETED", None)


async def test_a_retry_from_an_earlier_step_comes_from_where_that_step_came_from() -> None:
    trace = await traced(
        "b",
        *STRAIGHT,
        PlaybookFailed(error=FAILURE),
        ExecutionRetried(step=StepName("b"), visit=2),
        enter("b", 2, "b"),
    )

    assert walked(trace) == [("b", 2, 0), ("a", 1, 1)]


async def test_an_unknown_step_or_visit_is_refused_with_what_there_is() -> None:
    with pytest.raises(RequestInvalid, match="no step 'd' was entered; steps so far: a, b"):
        await traced("d", *STRAIGHT)
    with pytest.raises(RequestInvalid, match="step 'a' has no visit 2; its newest is 1"):
        await traced("a", *STRAIGHT, visit=2)
    with pytest.raises(RequestInvalid, match="limit is 0"):
        await traced("a", *STRAIGHT, limit=0)


async def test_another_tenants_execution_is_not_found() -> None:
    with pytest.raises(ExecutionNotFound):
        await traced("a", *STRAIGHT, scope=Scope("acme", "default"))


async def test_results_come_in_pages_and_those_of_open_commands_last() -> None:
    log = await log_of(
        STARTED,
        loop_started(),
        stage_opened(),
        dispatched(),
        committed(),
        loop_done(50, result=kept(None)),
        issued(),
        claimed(),
        called(task="pay"),
    )
    traces = Traces(log)

    whole = await traces.results(DEFAULT_SCOPE, FIRST)
    pages = [await traces.results(DEFAULT_SCOPE, FIRST, after=after, limit=1) for after in range(3)]

    assert [entry.kind for entry in whole.results] == ["frame", "loop", "task"]
    assert [page.results for page in pages] == [[entry] for entry in whole.results]
    assert [page.next_after for page in pages] == [1, 2, None]
