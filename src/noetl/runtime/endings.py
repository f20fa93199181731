"""How executions ended, for whoever waits for them."""

import asyncio
from collections import OrderedDict

import msgspec

from noetl.domain.events.values import Failure, Result
from noetl.domain.execution.state import ExecutionState
from noetl.kernel.ids import ExecutionId, StepName

REMEMBERED_MAX = 1_000


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    step: StepName | None = None  # the step it ended in, or that failed
    result: Result | None = None
    error: Failure | None = None
    results: dict[StepName, Result] = {}


def ending_of(state: ExecutionState) -> Ending:
    row = state.execution
    if row.status == "COMPLETED":
        step = state.ended_in
        result = None if step is None else state.results.get(step)
        return Ending(status=row.status, step=step, result=result, results=state.results)
    message = row.error or f"the execution was {row.status.lower()}"
    failed = state.failed
    error = failed.error if failed is not None else None
    if error is None:
        error = Failure(kind=row.error_kind or row.status.lower(), message=message)
    return Ending(
        status=row.status,
        step=None if failed is None else failed.step,
        error=error,
        results=state.results,
    )


class Endings:
    def __init__(self) -> None:
        self._known: OrderedDict[ExecutionId, Ending] = OrderedDict()
        self._waiting: dict[ExecutionId, asyncio.Future[Ending]] = {}

    def known(self, execution: ExecutionId) -> Ending | None:
        return self._known.get(execution)

    def over(self, execution: ExecutionId, ending: Ending) -> None:
        self._known[execution] = ending
        while len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)
        future = self._waiting.pop(execution, None)
        if future is not None and not future.done():
            future.set_result(ending)

    def begins_again(self, execution: ExecutionId) -> None:
        """A person retried it: how it had ended is no longer true."""
        self._known.pop(execution, None)

    async def wait(self, execution: ExecutionId, seconds: float) -> Ending | None:
        future = self._waiting.get(execution)
        if future is None:
            future = self._waiting[execution] = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([future], timeout=seconds)
        return future.result() if done else None
