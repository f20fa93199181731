"""Logs of a few steps, for tests that ask where results came from."""

from typing import Any

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.events import (
    Event,
    StepEntered,
    StepExited,
)
from noetl.domain.events.values import Result
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.trace import StepTrace, TraceRequest, Traces
from noetl.testing.given import Placed, at
from noetl.testing.histories import History
from tests.unit.runtime.written import FIRST, Ticking, write


def enter(step: str, visit: int = 1, *sources: str) -> StepEntered:
    return StepEntered(step=StepName(step), visit=visit, arrived_from=tuple(map(StepName, sources)))


def leave(step: str, visit: int = 1, *arcs: str, **fields: Any) -> StepExited:
    given: dict[str, Any] = {"status": "COMPLETED", **fields}
    return StepExited(step=StepName(step), visit=visit, arcs=tuple(map(StepName, arcs)), **given)


def kept(value: Any) -> Result:
    return Result(status="ok", context={"value": value})


async def traced(step: str, *happenings: Event | Placed, **asked: Any) -> StepTrace:
    log = await log_of(*happenings)
    return await Traces(log).trace(request(step, **asked))


async def log_of(*happenings: Event | Placed) -> MemoryEventLog:
    log, history = MemoryEventLog(Ticking()), History(FIRST)
    placed = [each if isinstance(each, Placed) else at(each) for each in happenings]
    drafts = [history.draft(each.event, **each.envelope) for each in placed]
    await write(log, FIRST, drafts, 100)
    return log


def request(step: str, **asked: Any) -> TraceRequest:
    fields: dict[str, Any] = {"scope": DEFAULT_SCOPE, "execution_id": FIRST, **asked}
    return TraceRequest(step=StepName(step), **fields)


def walked(trace: StepTrace) -> list[tuple[str, int, int]]:
    return [(visit.step, visit.visit, visit.distance) for visit in trace.visits]
