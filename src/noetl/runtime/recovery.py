"""After a start: find what was running, void the leases that died with us, and go on."""

from contextlib import suppress

from noetl.domain.projection import ProjectionQuery
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.scope import Scope
from noetl.ports.projection_store import ProjectionStore
from noetl.runtime import reports
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.projector import Projector
from noetl.runtime.seats import Seats
from noetl.runtime.turn import Turn

PAGE = 1_000


class Recovery:
    def __init__(
        self, coordinator: Coordinator, projector: Projector, projections: ProjectionStore
    ) -> None:
        self._coordinator = coordinator
        self._projector = projector
        self._projections = projections

    async def resume(self, scope: Scope, dead: frozenset[WorkerId]) -> list[ExecutionId]:
        """Go on with every open execution of the scope; workers in `dead` hold nothing any more."""
        while await self._projector.advance():
            pass  # the read models must know every execution before we ask them
        found = [
            execution
            for status in ("RUNNING", "PAUSED", "PENDING")
            for execution in await self._with_status(scope, status)
        ]
        for execution in found:
            with suppress(NoETLError):  # one that cannot be read must not hold up the others
                await void_leases(self._coordinator, execution, dead)
        return found

    async def _with_status(self, scope: Scope, status: str) -> list[ExecutionId]:
        found: list[ExecutionId] = []
        after = ""
        while True:
            query = ProjectionQuery(
                scope=scope,
                projection_type="execution",
                where={"status": status},
                after_id=after,
                limit=PAGE,
            )
            page = await self._projections.query(query)
            found += [record.execution_id for record in page]
            if len(page) < PAGE:
                return found
            after = page[-1].projection_id


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
