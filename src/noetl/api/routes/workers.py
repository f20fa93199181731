"""Workers at the desk: what each can do, and how much of it is in use."""

import msgspec

from noetl.api.route import Asked, Nothing, get
from noetl.domain.naming.locator import Locality
from noetl.kernel.ids import WorkerId
from noetl.kernel.instant import Instant
from noetl.runtime.seat import Seat


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    worker_id: WorkerId
    boot_id: str
    status: str  # `ready` while it asks for work, `busy` while it only works, else `quiet`
    slots: int
    in_use: int
    free: int
    seen_at: Instant
    labels: dict[str, str] = {}
    tools: tuple[str, ...] = ()
    locality: Locality | None = None  # where it is, if it says so


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    workers: list[WorkerView]
    slots: int = 0
    in_use: int = 0
    starving_executions: int = 0


async def listed(asked: Asked[Nothing, Nothing]) -> Workers:
    seats = asked.services.coordinator.seats
    now = asked.services.clock.now()
    views = [_view(seat, now) for seat in seats.all()]
    return Workers(
        workers=views,
        slots=sum(view.slots for view in views),
        in_use=sum(view.in_use for view in views),
        starving_executions=len(seats.starving),
    )


def _view(seat: Seat, now: Instant) -> WorkerView:
    worker = seat.worker
    return WorkerView(
        worker_id=worker.worker_id,
        boot_id=worker.boot_id,
        status=seat.status(now),
        slots=worker.slots,
        in_use=seat.in_use,
        free=seat.free,
        seen_at=seat.heard_at,
        labels=worker.labels,
        tools=worker.tools,
        locality=worker.locality,
    )


ROUTES = (
    get("/api/workers", "Workers and their slots", listed, gives=Workers),
    get("/api/worker/pools", "The same under its older name", listed, gives=Workers),
)
