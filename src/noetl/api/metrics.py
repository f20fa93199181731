"""Numbers for Prometheus: counted as things happen, or looked up when somebody asks."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from noetl.api.metrics_counted import Counted
from noetl.api.metrics_effects import EffectsCounted
from noetl.api.metrics_results import ResultNumbers
from noetl.api.metrics_tier import TierCounted
from noetl.domain.execution.rows import FrameRow, StageRow
from noetl.kernel.instant import seconds_between
from noetl.ports.clock import Clock
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.results.numbers import Numbers, of_reading_and_writing, of_the_server
from noetl.runtime import materializer, projector
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.running import Running

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TIMES = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30)

Gauges = Callable[[], Mapping[str, float]]
"""Numbers by name, as they are now: of tools, of stores."""

_PLAIN = (
    ("executions_running", "Executions held in memory."),
    ("executions_starving", "Executions with work that no worker had a slot for."),
    ("commands_open", "Commands that have not ended."),
    ("commands_claimed", "Commands that a worker holds."),
    ("worker_slots_capacity", "Slots of all workers at the desk."),
    ("worker_slots_used", "Slots with work, or with work promised to them."),
    ("worker_slots_free", "Slots that nobody promised work to."),
    ("projection_lag_milliseconds", "Age of the oldest event not in read models."),
    ("projector_lag_seconds", "The same in seconds."),
    ("projector_lag_events", f"Events not in read models, counted up to {PAGE_EVENTS_MAX}."),
    ("result_materializer_lag_seconds", "Age of the oldest event whose results are unchecked."),
    ("result_materializer_lag_events", f"Such events, counted up to {PAGE_EVENTS_MAX}."),
    ("turns_neglected", "Executions whose last turn was lost and that are looked at again."),
)
_STATES = ("PENDING", "CLAIMED", "RUNNING")
_WORKERS = ("ready", "busy", "quiet")


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Where the numbers come from."""

    coordinator: Coordinator
    log: EventLog
    projections: ProjectionStore
    clock: Clock
    gauges: Sequence[Gauges] = ()


class Metrics:
    """Labels are of closed sets: a name that users choose must not become a time series."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.registry = registry = CollectorRegistry()
        self._counted = Counted(registry)
        self._effects = EffectsCounted(registry, watched.coordinator.running)
        self.tier = TierCounted(registry)
        self._requests = Histogram(
            "noetl_http_request_seconds",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            buckets=TIMES,
            registry=registry,
        )
        self._gauges = {
            name: Gauge(f"noetl_{name}", text, registry=registry) for name, text in _PLAIN
        }
        self._lag = Gauge(
            "noetl_projection_lag_ms", "Lag of read models.", ["shard"], registry=registry
        )
        self._commands = Gauge(
            "noetl_commands_by_status", "Open commands.", ["status"], registry=registry
        )
        self._backlog = Gauge(
            "noetl_frame_backlog_total", "Open frames.", ["stage_kind", "status"], registry=registry
        )
        self._workers = Gauge(
            "noetl_workers", "Workers at the desk.", ["status"], registry=registry
        )
        registry.register(ResultNumbers(self._of_results))
        watched.coordinator.listeners += [self._counted.heard, self._effects.heard]
        watched.coordinator.measures.listeners.append(self._counted.measured)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).observe(seconds)

    async def text(self) -> bytes:
        await self._look()
        return await asyncio.to_thread(generate_latest, self.registry)  # layers count files

    def close(self) -> None:
        self._watched.coordinator.listeners.remove(self._counted.heard)
        self._watched.coordinator.listeners.remove(self._effects.heard)
        self._watched.coordinator.measures.listeners.remove(self._counted.measured)

    async def _look(self) -> None:
        coordinator = self._watched.coordinator
        running = list(coordinator.running.values())
        seats = coordinator.seats.all()
        lag_events, lag_seconds = await self._lag_of(projector.CONSUMER)
        unchecked_events, unchecked_seconds = await self._lag_of(materializer.CONSUMER)
        commands = self._open_commands(running)
        found: dict[str, float] = {
            "executions_running": len(running),
            "executions_starving": len(coordinator.seats.starving),
            "commands_open": sum(commands.values()),
            "commands_claimed": sum(commands.values()) - commands["PENDING"],
            "worker_slots_capacity": sum(seat.worker.slots for seat in seats),
            "worker_slots_used": sum(seat.in_use for seat in seats),
            "worker_slots_free": sum(seat.free for seat in seats),
            "projection_lag_milliseconds": lag_seconds * 1_000,
            "projector_lag_seconds": lag_seconds,
            "projector_lag_events": lag_events,
            "result_materializer_lag_seconds": unchecked_seconds,
            "result_materializer_lag_events": unchecked_events,
            "turns_neglected": len(coordinator.neglected),
        }
        for name, value in found.items():
            self._gauges[name].set(value)
        self._lag.labels("0").set(lag_seconds * 1_000)
        now = self._watched.clock.now()
        states: Counter[str] = Counter(seat.status(now) for seat in seats)
        for state in _WORKERS:
            self._workers.labels(state).set(states[state])
        self._frames_of(running)
        self._others()

    def _open_commands(self, running: list[Running]) -> "Counter[str]":
        rows = [row for each in running for row in each.state.commands.values()]
        found = Counter(row.status for row in rows)
        for state in _STATES:
            self._commands.labels(state).set(found[state])
        return found

    def _frames_of(self, running: list[Running]) -> None:
        """Rows that were not handed out yet are frames to come: they count once, as pending."""
        self._backlog.clear()
        found: Counter[tuple[str, str]] = Counter()
        for each in running:
            state = each.state
            for frame in state.frames.values():
                found[_kind(state.stages.get(frame.stage_id)), _status(frame)] += 1
            for work in state.loop_work.values():
                if work.next_index < work.total or work.returned:
                    stage = None if work.stage_id is None else state.stages.get(work.stage_id)
                    found[_kind(stage), "PENDING"] += 1
        for (kind, status), count in found.items():
            self._backlog.labels(kind, status).set(count)

    def _others(self) -> None:
        for gauges in self._watched.gauges:
            for name, value in gauges().items():
                if name not in self._gauges:
                    text = name.replace("_", " ")
                    self._gauges[name] = Gauge(f"noetl_{name}", text, registry=self.registry)
                self._gauges[name].set(value)

    def _of_results(self) -> Iterator[Numbers]:
        results = self._watched.coordinator.held.results
        yield from of_reading_and_writing(results)
        yield from of_the_server(results)

    async def _lag_of(self, consumer: str) -> tuple[int, float]:
        """How many events it has not seen, and how old the oldest of these is."""
        watched = self._watched
        cursor = await watched.projections.cursor(consumer)
        position = 0 if cursor is None else cursor.position
        waiting = await watched.log.tail(after_position=position, limit=PAGE_EVENTS_MAX)
        if not waiting:
            return 0, 0.0
        age = seconds_between(waiting[0].ingest_time, watched.clock.now())
        return len(waiting), max(0.0, age)


def _kind(stage: StageRow | None) -> str:
    return "loop" if stage is None else stage.stage_kind


def _status(frame: FrameRow) -> str:
    return "PENDING" if frame.worker_id is None else "RUNNING"
