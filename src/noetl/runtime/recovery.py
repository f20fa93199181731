"""After a start: find what was running, void the leases that died with us, and go on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
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
from noetl.runtime.reports_frames import abandon_frame
from noetl.runtime.seats import Seats
from noetl.runtime.turn import Turn

PAGE = 1_000
AT_ONCE_MAX = 16
"""Executions that are read from the log side by side."""

OPEN = ("RUNNING", "PAUSED", "PENDING")
NESTED_MAX = 1_000
"""Sub-playbooks within each other: nobody nests them so deep, and a wrong log must not hang us."""

Listener = Callable[[Sequence[ExecutionId]], Awaitable[None]]
"""Told which executions go on."""


class Recovery:
    """Workers in `dead` died with the process before this one: they hold nothing any more."""

    def __init__(
        self,
        coordinator: Coordinator,
        projector: Projector,
        projections: ProjectionStore,
        *,
        dead: frozenset[WorkerId] = frozenset(),
    ) -> None:
        self._coordinator = coordinator
        self._projector = projector
        self._projections = projections
        self._dead = dead
        self.listeners: list[Listener] = []

    async def resume(self, scope: Scope) -> list[ExecutionId]:
        """Go on with every open execution.

        Whoever holds the log is the one writer of all that is in it, so it goes on with other
        scopes than its own too: nobody else would.
        """
        await self._catch_up()
        found = [
            record.execution_id
            for each in await self._scopes(scope)
            async for record in self._open(each)
        ]
        await self._carry_on(found)
        return found

    async def take_up(self, scope: Scope, execution: ExecutionId) -> list[ExecutionId]:
        """Go on with this execution and the sub-playbooks below it, as far as they are open."""
        await self._catch_up()
        parents = {
            record.execution_id: record.state.get("parent_execution_id")
            async for record in self._open(scope)
        }
        found = [each for each in parents if _is_below(each, execution, parents)]
        await self._carry_on(found)
        return found

    async def _catch_up(self) -> None:
        while await self._projector.advance():
            pass  # the read models must know every execution before we ask them

    async def _carry_on(self, found: list[ExecutionId]) -> None:
        waiting = iter(found)
        await asyncio.gather(*(self._go_on(waiting) for _ in range(AT_ONCE_MAX)))
        for listener in self.listeners:
            await listener(found)

    async def _go_on(self, waiting: Iterator[ExecutionId]) -> None:
        for execution in waiting:
            with suppress(NoETLError):  # one that cannot be read must not hold up the others
                await self._follow_the_parent(execution)
            with suppress(NoETLError):
                await void_leases(self._coordinator, execution, self._dead)

    async def _follow_the_parent(self, child: ExecutionId) -> None:
        """Its parent was cancelled, and whoever did that died before the child was told."""
        source = (await self._coordinator.load(child)).source
        parent = source.parent_execution_id
        if parent is None:
            return
        record = await self._projections.load(source.scope, "execution", parent)
        if record is None or record.state.get("status") != "CANCELLED":
            return  # and nobody who goes on with the child need hold its parent for that
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

    async def _open(self, scope: Scope) -> AsyncIterator[ProjectionRecord]:
        for status in OPEN:
            query = ProjectionQuery(
                scope=scope, projection_type="execution", where={"status": status}, limit=PAGE
            )
            async for record in self._all(query):
                yield record

    async def _all(self, query: ProjectionQuery) -> AsyncIterator[ProjectionRecord]:
        while page := await self._projections.query(query):
            for record in page:
                yield record
            if len(page) < query.limit:
                return
            query = msgspec.structs.replace(query, after_id=page[-1].projection_id)


def _is_below(
    execution: ExecutionId, above: ExecutionId, parents: Mapping[ExecutionId, ExecutionId | None]
) -> bool:
    """A parent that has ended is known to its children alone."""
    at: ExecutionId | None = execution
    for _ in range(NESTED_MAX):
        if at is None or at == above:
            break
        at = parents.get(at)
    return at == above


async def void_leases(
    coordinator: Coordinator,
    execution: ExecutionId,
    gone: frozenset[WorkerId],
    *,
    handed_back: bool = False,
) -> None:
    """Work of these workers may be claimed again, but for what their newest boot holds."""

    def wish(turn: Turn) -> bool:
        return _void(turn, gone, coordinator.seats, handed_back=handed_back)

    while await coordinator.submit(execution, wish):
        pass


def _void(turn: Turn, gone: frozenset[WorkerId], seats: Seats, *, handed_back: bool) -> bool:
    """Returns whether there is more than fits into a turn."""
    for row in list(turn.state.commands.values()):
        if turn.is_full:
            return True
        if row.worker_id not in gone or seats.is_current(row.worker_id, row.boot_id):
            continue
        if handed_back:
            reports.hand_back(turn, row)
        else:
            reports.take_back(turn, row)
    for frame in list(turn.state.frames.values()):
        holder = turn.running.holders.of(frame.frame_id)
        held_by = None if holder is None else holder.incarnation
        if frame.worker_id not in gone or seats.is_incarnation(frame.worker_id, held_by):
            continue
        if turn.is_full:
            return True
        reclaimer = None if handed_back else frame.worker_id  # by its newer boot
        abandon_frame(turn, frame, reclaimer=reclaimer, handed_back=handed_back)
    return False
