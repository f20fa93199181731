"""Visits looked at closely: tasks, loops, children and the names of results."""

from noetl.domain.events import (
    CallFailed,
    ChildStarted,
    FrameFailed,
    PlaybookInitialized,
)
from noetl.domain.events.values import Result
from noetl.kernel.ids import ExecutionId, FrameId, StepName
from noetl.testing.given import at
from tests.unit.domain.happenings import (
    COMMAND,
    FAILURE,
    STARTED,
    abandoned,
    called,
    claimed,
    committed,
    completed,
    dispatched,
    in_frame,
    issued,
    loop_done,
    loop_started,
    reference,
    stage_opened,
)
from tests.unit.runtime.tracing import enter, kept, leave, traced

CHILD = ExecutionId("999")


async def test_tasks_and_results_are_named() -> None:
    whole = Result(
        status="ok", context={"tasks": {"fetch": 1, "pay": 2}, "order": ["fetch", "pay"]}
    )
    trace = await traced(
        "end",
        STARTED,
        enter("load"),
        issued(),
        claimed(),
        called(task="pay", effect="fired", tries=2),
        completed(result=whole),
        leave("load", 1, "end"),
        enter("end", 1, "load"),
    )

    end, load = trace.visits
    assert load.result is not None
    assert end.parents == [load.result.uri]
    assert [(task.task, task.effect, task.tries) for task in load.tasks] == [
        ("fetch", None, 1),
        ("pay", "fired", 2),
    ]
    fetch, pay = (task.result for task in load.tasks)
    assert fetch is not None
    assert pay is not None
    assert (fetch.parent, pay.parent) == (None, fetch.uri)
    assert load.task_count == 2


async def test_the_result_of_a_lone_tool_is_its_steps() -> None:
    trace = await traced(
        "load",
        STARTED,
        enter("load"),
        issued(),
        claimed(),
        called(task="load", effect="fired"),
        completed(result=kept(1)),
    )

    (visit,) = trace.visits
    assert [task.result for task in visit.tasks] == [visit.result]
    assert visit.result is not None


async def test_a_task_that_failed_says_why() -> None:
    call = CallFailed(step=StepName("load"), error=FAILURE, task="pay", effect="fired")
    trace = await traced("load", STARTED, enter("load"), issued(), at(call, command_id=COMMAND))

    (task,) = trace.visits[0].tasks
    assert (task.error, task.result) == (FAILURE, None)


async def test_a_loop_is_told_by_its_numbers() -> None:
    other = FrameId("f2")
    trace = await traced(
        "load",
        STARTED,
        enter("load"),
        loop_started(collection_size=60, collection_ref=reference("items")),
        stage_opened(),
        dispatched(),
        abandoned(),
        dispatched(attempt=2),
        committed(row_count=50, failed_rows=2),
        dispatched(frame=other, ordinal=1),
        in_frame(FrameFailed(error=FAILURE), other),
    )

    loop = trace.visits[0].loop
    assert loop is not None
    assert (loop.mode, loop.rows, loop.collection) == ("parallel", 60, "noetl://items")
    assert (loop.frames, loop.frames_committed, loop.frames_lost) == (3, 1, 2)
    assert (loop.rows_done, loop.rows_failed) == (48, 2)


async def test_the_end_of_a_loop_says_how_many_rows_there_were() -> None:
    trace = await traced(
        "load", STARTED, enter("load"), loop_started(), loop_done(7, result=kept(None))
    )

    visit = trace.visits[0]
    assert visit.loop is not None
    assert visit.loop.rows_done == 7
    assert visit.result is not None
    assert visit.result.uri.endswith("/load@1")


async def test_children_and_the_execution_that_asked_are_named() -> None:
    began = PlaybookInitialized(
        path="x",
        playbook_digest="5f" * 32,
        parent_execution_id=ExecutionId("1"),
        parent_step=StepName("call"),
    )
    child = ChildStarted(cycle="1/load/1/0/t/1", child_execution_id=CHILD, path="y")

    trace = await traced("load", began, enter("load"), issued(), at(child, command_id=COMMAND))

    assert (trace.parent_execution_id, trace.parent_step) == ("1", "call")
    assert trace.visits[0].children == [CHILD]
