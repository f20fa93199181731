"""What people ask of executions: cancel, pause, resume, retry, and facts of their own."""

from collections.abc import Callable
from contextlib import suppress

from noetl.decider import requests
from noetl.decider.answers import Decided
from noetl.domain.events import BusinessObjectChanged, ExecutionCancelled
from noetl.domain.log import AtEvent
from noetl.kernel.errors import ExecutionNotFound, StateRefuses
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.turn import EVENTS_AIMED, Turn, fitting
from noetl.wire.codec import open_stored


class Control:
    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def cancel(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        reason: str | None = None,
        cascade: bool = True,
    ) -> list[ExecutionId]:
        """Ends the execution and, with `cascade`, its children; returns whom it ended."""
        await self._check_scope(scope, execution)
        return await cancel_tree(self._coordinator, execution, reason, cascade=cascade)

    async def pause(
        self, scope: Scope, execution: ExecutionId, *, reason: str | None = None
    ) -> None:
        """Nothing new starts; what runs may end."""
        await self._ask(scope, execution, lambda turn: requests.pause(turn.state, reason))

    async def resume(self, scope: Scope, execution: ExecutionId) -> None:
        await self._ask(scope, execution, lambda turn: requests.resume(turn.state))

    async def retry(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        step: StepName | None = None,
        reason: str | None = None,
    ) -> None:
        """Run an ended execution again, from the step that failed or from the one named."""
        await self._ask(
            scope,
            execution,
            lambda turn: requests.retry(turn.state, turn.running.plan.playbook, step, reason),
        )
        self._coordinator.endings.begins_again(execution)

    async def emit(
        self, scope: Scope, execution: ExecutionId, change: BusinessObjectChanged
    ) -> None:
        """A fact about a business object, told from outside."""
        await self._ask(scope, execution, lambda _: [Decided(event=change)])

    async def _ask(
        self, scope: Scope, execution: ExecutionId, events: Callable[[Turn], list[Decided]]
    ) -> None:
        await self._check_scope(scope, execution)
        await self._coordinator.submit(execution, lambda turn: turn.add(*events(turn)))

    async def _check_scope(self, scope: Scope, execution: ExecutionId) -> None:
        """Another tenant's execution is not found, so nobody learns that it exists."""
        if await self._coordinator.held.log.scope_of(execution) != scope:
            raise ExecutionNotFound(execution)


async def cancel_tree(
    coordinator: Coordinator, execution: ExecutionId, reason: str | None, *, cascade: bool = True
) -> list[ExecutionId]:
    """Raises StateRefuses when it is over."""
    children: list[ExecutionId] | None = None
    while children is None:
        children = await coordinator.submit(execution, lambda turn: _cancel(turn, reason, cascade))
    cancelled = [execution]
    for child in children if cascade else ():
        with suppress(StateRefuses, ExecutionNotFound):  # it had ended, or never began
            cancelled += await cancel_tree(coordinator, child, reason)
    return cancelled


async def cancelled_children(
    coordinator: Coordinator, parent: ExecutionId
) -> tuple[frozenset[ExecutionId], str | None]:
    """Whom a cancelled execution was to take with it, and the reason that was given."""
    state = (await coordinator.load(parent)).state
    last = state.execution.terminal_event_id
    if state.execution.status != "CANCELLED" or last is None:
        return frozenset(), None
    log = coordinator.held.log
    version = await log.version_at(parent, AtEvent(last)) or 1
    for stored in await log.read(parent, after_version=version - 1, limit=1):
        event = open_stored(stored).event
        if isinstance(event, ExecutionCancelled) and event.cascade:
            children = frozenset(child.execution_id for child in state.children.values())
            return children, event.reason
    return frozenset(), None


def _cancel(turn: Turn, reason: str | None, cascade: bool) -> list[ExecutionId] | None:
    """The children; None when so much is open that another append is needed."""
    children = [child.execution_id for child in turn.state.children.values()]
    *ended, _ = requests.cancel(turn.state, reason)
    ended.append(Decided(event=ExecutionCancelled(reason=reason, cascade=cascade)))
    if len(ended) <= EVENTS_AIMED:
        turn.add(*ended)
        return children
    # Nothing new may begin, and nothing may follow from the ends, until all of them are recorded.
    held = requests.pause(turn.state, reason)
    turn.add(*held, *fitting(ended, EVENTS_AIMED - len(held)))
    return None
