"""Executions as people see them: listed, shown, with their outcome, their events, their effects."""

from typing import Any

import msgspec
import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.domain.events import ExecutionCancelled, PlaybookCompleted, PlaybookFailed
from noetl.domain.events.envelope import Draft
from noetl.domain.events.values import Failure, Result
from noetl.kernel.errors import ExecutionNotFound, RequestInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.pipeline.payloads import as_reference
from noetl.runtime.executions import FOLDED_EVENTS_MAX, Executions
from noetl.runtime.loop_progress import LoopProgress
from noetl.runtime.projector import Projector
from noetl.templates.recorded import referred_result
from noetl.testing.histories import History, begin, command_cycle, loop_of_frames
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.unit.runtime.written import FIRST, SECOND, STEP, THIRD, Ticking, whole_run, write

OTHERS = Scope("acme", "default")


class Shelf:
    """A log, its read models and payloads, and what is asked of them."""

    def __init__(self) -> None:
        self.log = MemoryEventLog(Ticking())
        self.projections = MemoryProjectionStore()
        self.payloads = MemoryPayloadStore()
        self.executions = Executions(self.log, self.projections, memory_results(self.payloads))

    async def record(self, execution: ExecutionId, drafts: list[Draft]) -> None:
        await write(self.log, execution, drafts, 100)

    async def project(self) -> None:
        projector = Projector(self.log, self.projections)
        while await projector.advance():
            pass

    async def ended(self, execution: ExecutionId, end: Any) -> None:
        history = History(execution)
        drafts = [*begin(history), *command_cycle(history, STEP), history.draft(end)]
        await self.record(execution, drafts)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


async def test_the_newest_executions_come_first_page_by_page(shelf: Shelf) -> None:
    for execution in (FIRST, SECOND, THIRD):
        await shelf.record(execution, whole_run(execution))
    await shelf.project()

    page = await shelf.executions.list(DEFAULT_SCOPE, limit=2)
    rest = await shelf.executions.list(DEFAULT_SCOPE, before=page[-1].execution_id)

    assert [view.execution_id for view in (*page, *rest)] == [THIRD, SECOND, FIRST]
    assert {view.status for view in page} == {"COMPLETED"}


async def test_a_list_is_of_one_scope_one_status_and_one_path(shelf: Shelf) -> None:
    await shelf.record(FIRST, whole_run(FIRST))
    await shelf.record(SECOND, list(begin(History(SECOND))))
    await shelf.project()
    listed = shelf.executions.list

    assert [view.execution_id for view in await listed(DEFAULT_SCOPE, status="RUNNING")] == [SECOND]
    assert len(await listed(DEFAULT_SCOPE, path="examples/orders")) == 2
    assert await listed(DEFAULT_SCOPE, path="examples") == []
    assert await listed(OTHERS) == []


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_a_page_has_a_size(shelf: Shelf, limit: int) -> None:
    with pytest.raises(RequestInvalid, match="limit"):
        await shelf.executions.list(DEFAULT_SCOPE, limit=limit)


@pytest.mark.parametrize("is_projected", [True, False])
async def test_an_execution_is_shown_with_its_loops_also_before_read_models_know_it(
    shelf: Shelf, is_projected: bool
) -> None:
    await shelf.record(FIRST, whole_run(FIRST, frames=2))
    if is_projected:
        await shelf.project()

    view = await shelf.executions.show(DEFAULT_SCOPE, FIRST)

    assert (view.status, view.path, view.version) == ("COMPLETED", "examples/orders", 1)
    assert (view.current_step, view.event_count) == (STEP, 19)
    assert view.duration_seconds == pytest.approx(0.018)
    assert view.loop_progress == [
        LoopProgress(step=STEP, visit=1, mode="parallel", total=100, done=100)
    ]


async def test_a_read_model_that_lags_is_passed_over(shelf: Shelf) -> None:
    history = History(FIRST)
    await shelf.record(FIRST, list(begin(history)))
    await shelf.project()
    await shelf.record(FIRST, list(command_cycle(history, STEP)))

    assert (await shelf.executions.show(DEFAULT_SCOPE, FIRST)).event_count == 8


async def test_a_long_log_is_told_from_its_read_model(shelf: Shelf) -> None:
    history = History(FIRST)
    await shelf.record(FIRST, list(begin(history)))
    await shelf.project()
    frames = FOLDED_EVENTS_MAX // 3 + 1
    await shelf.record(FIRST, list(loop_of_frames(history, STEP, frames)))

    assert (await shelf.executions.show(DEFAULT_SCOPE, FIRST)).event_count == 1
    assert (await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)).events > FOLDED_EVENTS_MAX


async def test_what_another_tenant_owns_is_not_found(shelf: Shelf) -> None:
    await shelf.record(FIRST, whole_run(FIRST))
    await shelf.project()
    ask = shelf.executions

    for asked in (ask.show, ask.outcome, ask.events, ask.effects, ask.state):
        with pytest.raises(ExecutionNotFound):
            await asked(OTHERS, FIRST)
        with pytest.raises(ExecutionNotFound):
            await asked(DEFAULT_SCOPE, SECOND)


async def test_an_execution_that_goes_on_has_no_outcome_yet(shelf: Shelf) -> None:
    await shelf.record(FIRST, list(begin(History(FIRST))))

    outcome = await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)

    assert (outcome.status, outcome.result, outcome.error) == ("RUNNING", None, None)
    assert outcome.duration_seconds is None


async def test_the_outcome_holds_the_plain_result(shelf: Shelf) -> None:
    result = Result(status="ok", context={"value": {"total": 3}})
    await shelf.ended(FIRST, PlaybookCompleted(step=STEP, result=result))

    outcome = await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)

    assert (outcome.status, outcome.step) == ("COMPLETED", STEP)
    assert outcome.result == {"total": 3}
    assert (outcome.events, outcome.error) == (9, None)


async def test_a_pipeline_s_outcome_is_that_of_its_last_task(shelf: Shelf) -> None:
    context = {"tasks": {"b": 2, "a": 1}, "order": ["b", "a"]}
    result = Result(status="ok", context=context)
    await shelf.ended(FIRST, PlaybookCompleted(step=STEP, result=result))

    assert (await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)).result == 1


async def test_a_result_in_the_payload_store_is_fetched(shelf: Shelf) -> None:
    content = {"value": list(range(1000))}
    stored = await shelf.payloads.put(
        DEFAULT_SCOPE, msgspec.json.encode(content), "application/json"
    )
    result = referred_result(content, as_reference(stored))
    await shelf.ended(FIRST, PlaybookCompleted(step=STEP, result=result))

    outcome = await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)

    assert outcome.result == list(range(1000))


async def test_a_failed_execution_says_where_and_why(shelf: Shelf) -> None:
    error = Failure(kind="http", message="503 from the bank", retryable=True, code="HTTP_503")
    await shelf.ended(FIRST, PlaybookFailed(error=error, step=StepName("pay")))
    await shelf.project()

    outcome = await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)
    view = await shelf.executions.show(DEFAULT_SCOPE, FIRST)

    assert (outcome.status, outcome.step, outcome.error) == ("FAILED", "pay", error)
    assert (view.error_kind, view.error) == ("http", "503 from the bank")


async def test_a_cancelled_execution_gives_the_reason(shelf: Shelf) -> None:
    await shelf.ended(FIRST, ExecutionCancelled(reason="by hand"))

    outcome = await shelf.executions.outcome(DEFAULT_SCOPE, FIRST)

    assert outcome.status == "CANCELLED"
    assert outcome.error == Failure(kind="cancelled", message="by hand")


async def test_events_come_page_by_page_and_by_type(shelf: Shelf) -> None:
    await shelf.record(FIRST, whole_run(FIRST, frames=3))
    events = shelf.executions.events

    page = await events(DEFAULT_SCOPE, FIRST, after_version=2, limit=3)
    frames = await events(DEFAULT_SCOPE, FIRST, event_type="frame.committed", limit=2)
    later = await events(
        DEFAULT_SCOPE,
        FIRST,
        after_version=frames[-1].envelope.stream_version,
        event_type="frame.committed",
    )

    assert [each.envelope.stream_version for each in page] == [3, 4, 5]
    assert [each.envelope.event_type for each in (*frames, *later)] == ["frame.committed"] * 3
    assert await events(DEFAULT_SCOPE, FIRST, event_type="no.such") == []
