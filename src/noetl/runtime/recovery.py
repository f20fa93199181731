"""After a start: find what was running, void the leases that died with us, and go on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import msgspec

from noetl.domain.projection import ProjectionQuery, ProjectionRecord
from noetl.domain.read_models import NO_TENANT, SCOPES
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.scope import Scope
from noetl.ports.projection_store import ProjectionStore
from noetl.runtime import reports
from noetl.runtime.control import cancel_tree, cancelled_children
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.projector import Projector
from noetl.runtime.seats import Seats
from noetl.runtime.turn import Turn

PAGE = 1_000
AT_ONCE_MAX = 16
"""Executions that are read from the log side by side."""

OPEN = ("RUNNING", "PAUSED", "PENDING")


class Recovery:
    def __init__(
        self, coordinator: Coordinator, projector: Projector, projections: ProjectionStore
    ) -> None:
        self._coordinator = coordinator
        self._projector = projector
        self._projections = projections

    async def resume(self, scope: Scope, dead: frozenset[WorkerId]) -> list[ExecutionId]:
        """Go on with every open execution; workers in `dead` hold nothing any more.

        Whoever holds the log is the one writer of all that is in it, so it goes on with other
        scopes than its own too: nobody else would.
        """
        while await self._projector.advance():
            pass  # the read models must know every execution before we ask them
        found = [
            execution
            for each in await self._scopes(scope)
            for status in OPEN
            async for execution in self._with_status(each, status)
        ]
        waiting = iter(found)
        await asyncio.gather(*(self._go_on(waiting, dead) for _ in range(AT_ONCE_MAX)))
        return found

    async def _go_on(self, waiting: Iterator[ExecutionId], dead: frozenset[WorkerId]) -> None:
        for execution in waiting:
            with suppress(NoETLError):  # one that cannot be read must not hold up the others
                await self._follow_the_parent(execution)
            with suppress(NoETLError):
                await void_leases(self._coordinator, execution, dead)

    async def _follow_the_parent(self, child: ExecutionId) -> None:
        """Its parent was cancelled, and whoever did that died before the child was told."""
        parent = (await self._coordinator.load(child)).source.parent_execution_id
        if parent is None:
            return
        children, reason = await cancelled_children(self._coordinator, parent)
        if child in children:
            await cancel_tree(self._coordinator, child, reason)

    async def _scopes(self, own: Scope) -> list[Scope]:
        query = ProjectionQuery(scope=NO_TENANT, projection_type=SCOPES, limit=PAGE)
        known = {
            Scope(record.state["tenant_id"], record.state["organization_id"])
            async for record in self._all(query)
        }
        return sorted(known | {own})

    async def _with_status(self, scope: Scope, status: str) -> AsyncIterator[ExecutionId]:
        query = ProjectionQuery(
            scope=scope, projection_type="execution", where={"status": status}, limit=PAGE
        )
        async for record in self._all(query):
            yield record.execution_id

    async def _all(self, query: ProjectionQuery) -> AsyncIterator[ProjectionRecord]:
        while page := await self._projections.query(query):
            for record in page:
                yield record
            if len(page) < query.limit:
                return
            query = msgspec.structs.replace(query, after_id=page[-1].projection_id)


async def void_leases(
    coordinator: Coordinator, execution: ExecutionId, dead: frozenset[WorkerId]
) -> None:
    """Work of these workers may be claimed again, but for what their newest boot holds."""
    while await coordinator.submit(execution, lambda turn: _void(turn, dead, coordinator.seats)):
        pass


def _void(turn: Turn, dead: frozenset[WorkerId], seats: Seats) -> bool:
    """Returns whether there is more than fits into a turn."""
    for row in list(turn.state.commands.values()):
        if turn.is_full:
            return True
        if row.worker_id in dead and not seats.is_current(row.worker_id, row.boot_id):
            reports.take_back(turn, row)
    for frame in list(turn.state.frames.values()):
        held_by = turn.running.incarnations.get(frame.frame_id)
        if frame.worker_id not in dead or seats.is_incarnation(frame.worker_id, held_by):
            continue
        if turn.is_full:
            return True
        reports.abandon_frame(turn, frame)
    return False
