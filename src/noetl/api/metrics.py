"""Numbers for Prometheus: counted as things happen, or looked up when somebody asks."""

from collections.abc import Sequence

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from noetl.domain.events import ExecutionCancelled, PlaybookCompleted, PlaybookFailed
from noetl.domain.events import PlaybookInitialized as Started
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import seconds_between
from noetl.ports.clock import Clock
from noetl.ports.event_log import EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.projector import CONSUMER

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ENDS: dict[type, str] = {
    PlaybookCompleted: "COMPLETED",
    PlaybookFailed: "FAILED",
    ExecutionCancelled: "CANCELLED",
}
_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
_TIMES = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30)


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Where the numbers come from."""

    coordinator: Coordinator
    log: EventLog
    projections: ProjectionStore
    clock: Clock


class Metrics:
    """Labels are of closed sets: a name that users choose must not become a time series."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.registry = registry = CollectorRegistry()
        self._started = Counter(
            "noetl_executions_started", "Executions accepted.", registry=registry
        )
        self._ended = Counter(
            "noetl_executions_ended", "Executions by their end.", ["status"], registry=registry
        )
        self._events = Counter(
            "noetl_events_appended", "Events by type.", ["type"], registry=registry
        )
        self._result_bytes = Histogram(
            "noetl_event_result_bytes",
            "Size of events that carry a result.",
            buckets=_SIZES,
            registry=registry,
        )
        self._requests = Histogram(
            "noetl_http_request_seconds",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            buckets=_TIMES,
            registry=registry,
        )
        self._gauges = {
            name: Gauge(f"noetl_{name}", text, registry=registry)
            for name, text in (
                ("executions_running", "Executions held in memory."),
                ("executions_starving", "Executions with work that no worker had a slot for."),
                ("commands_open", "Commands that have not ended."),
                ("commands_claimed", "Commands that a worker holds."),
                ("worker_slots_used", "Slots with work, or with work promised to them."),
                ("worker_slots_free", "Slots that nobody promised work to."),
                ("projection_lag_milliseconds", "Age of the oldest event not in read models."),
            )
        }
        watched.coordinator.listeners.append(self._heard)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).observe(seconds)

    async def text(self) -> bytes:
        await self._look()
        return generate_latest(self.registry)

    def close(self) -> None:
        self._watched.coordinator.listeners.remove(self._heard)

    def _heard(self, _execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        for sealed in events:
            event = sealed.event
            self._events.labels(event.TYPE).inc()
            if isinstance(event, Started):
                self._started.inc()
            status = _ENDS.get(type(event))
            if status is not None:
                self._ended.labels(status).inc()
            if getattr(event, "result", None) is not None:
                self._result_bytes.observe(len(sealed.canonical))

    async def _look(self) -> None:
        coordinator = self._watched.coordinator
        commands = [
            row for each in coordinator.running.values() for row in each.state.commands.values()
        ]
        seats = coordinator.seats.all()
        found = {
            "executions_running": len(coordinator.running),
            "executions_starving": len(coordinator.seats.starving),
            "commands_open": len(commands),
            "commands_claimed": sum(row.worker_id is not None for row in commands),
            "worker_slots_used": sum(max(0, seat.worker.slots - seat.free) for seat in seats),
            "worker_slots_free": sum(seat.free for seat in seats),
            "projection_lag_milliseconds": await self._lag_milliseconds(),
        }
        for name, value in found.items():
            self._gauges[name].set(value)

    async def _lag_milliseconds(self) -> float:
        cursor = await self._watched.projections.cursor(CONSUMER)
        position = 0 if cursor is None else cursor.position
        waiting = await self._watched.log.tail(after_position=position, limit=1)
        if not waiting:
            return 0.0
        lag = seconds_between(waiting[0].ingest_time, self._watched.clock.now())
        return max(0.0, lag * 1000)
