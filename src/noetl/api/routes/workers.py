"""Workers at the desk."""

import msgspec

from noetl.api.route import Asked, Nothing, get
from noetl.kernel.ids import WorkerId
from noetl.kernel.instant import Instant


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    worker_id: WorkerId
    slots: int
    free: int
    seen_at: Instant
    labels: dict[str, str] = {}
    tools: tuple[str, ...] = ()


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    workers: list[WorkerView]
    starving_executions: int = 0


async def listed(asked: Asked[Nothing, Nothing]) -> Workers:
    seats = asked.services.coordinator.seats
    views = [
        WorkerView(
            worker_id=seat.worker.worker_id,
            slots=seat.worker.slots,
            free=seat.free,
            seen_at=seat.seen_at,
            labels=seat.worker.labels,
            tools=seat.worker.tools,
        )
        for seat in seats.all()
    ]
    return Workers(workers=views, starving_executions=len(seats.starving))


ROUTES = (get("/api/workers", "Workers and their slots", listed, gives=Workers),)
