"""After a start: find what was running, void the leases that died with us, and go on."""

from noetl.domain.projection import ProjectionQuery
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.scope import Scope
from noetl.ports.projection_store import ProjectionStore
from noetl.runtime import reports
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.projector import Projector
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
            await self._coordinator.submit(execution, lambda turn: void_leases(turn, dead))
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


def void_leases(turn: Turn, dead: frozenset[WorkerId]) -> None:
    for row in turn.state.commands.values():
        if row.worker_id in dead:
            turn.running.void.add(row.command_id)
    for frame in list(turn.state.frames.values()):
        if frame.worker_id in dead:
            reports.abandon_frame(turn, frame)
