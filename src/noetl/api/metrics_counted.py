"""Numbers that only rise: counted from durable events, and from what services tell."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram

from noetl.domain.events import (
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    ExecutionCancelled,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    PlaybookCompleted,
    PlaybookFailed,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
)
from noetl.domain.events import PlaybookInitialized as Started
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.kernel.instant import Instant, seconds_between
from noetl.runtime.measures import Measure

_ENDS: dict[type, str] = {
    PlaybookCompleted: "COMPLETED",
    PlaybookFailed: "FAILED",
    ExecutionCancelled: "CANCELLED",
}
_COMMANDS: dict[type, str] = {
    CommandIssued: "issued",
    CommandClaimed: "claimed",
    CommandCompleted: "completed",
    CommandFailed: "failed",
}
_FRAMES: dict[type, str] = {
    FrameDispatched: "dispatched",
    ShardEnqueued: "dispatched",
    FrameCommitted: "committed",
    ShardDone: "committed",
    ShardFailed: "failed",
    FrameFailed: "failed",
    FrameAbandoned: "abandoned",
}
_LEASES: dict[Measure, str] = {"command_lease_expired": "command", "frame_lease_expired": "frame"}

BYTES = (100, 500, 1_000, 2_048, 10_000, 100_000, 1_000_000)
QUICK = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2)
"""Turns and commits: half a millisecond when all is well, seconds when a disk is not."""

LONG = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800)
"""What people's own code takes."""

COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000)
TIMED_MAX = 10_000
"""Frames whose begin is kept until they end; of more than these the time is not told."""


class Counted:
    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"noetl_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(f"noetl_{name}", text, buckets=buckets, registry=registry)

        self._started = counter("executions_started", "Executions accepted.")
        self._ended = counter("executions_ended", "Executions by their end.", "status")
        self._events = counter("events_appended", "Events by type.", "type")
        self._commands = counter("commands", "What happened to commands.", "status")
        self._frames = counter("frames", "What happened to frames.", "status")
        self._rows = counter("rows", "Rows of committed frames by their end.", "status")
        self._leases = counter("leases_expired", "Leases that ran out.", "kind")
        self._refused = counter("claims_refused", "Words of workers that had lost their claim.")
        self._turns_lost = counter("turns_lost", "Turns that could not be appended.")
        self._projected = counter("projector_events", "Events that reached the read models.")
        self._result_bytes = histogram(
            "event_result_bytes", "Size of events that carry a result.", BYTES
        )
        self._command_seconds = histogram("command_seconds", "From claim to end.", LONG)
        self._frame_seconds = histogram("frame_lease_seconds", "From dispatch to end.", LONG)
        self._frame_rows = histogram("frame_rows", "Rows of a committed frame.", COUNTS)
        self._measured = {
            "turn_seconds": histogram("turn_seconds", "A turn, its append included.", QUICK),
            "group_seconds": histogram("group_commit_seconds", "One commit of the log.", QUICK),
            "group_appends": histogram("group_commit_appends", "Appends in a commit.", COUNTS),
            "group_events": histogram("group_commit_events", "Events in a commit.", COUNTS),
        }
        self._begun: dict[FrameId, Instant] = {}

    def heard(self, _execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        for sealed in events:
            event = sealed.event
            self._events.labels(event.TYPE).inc()
            if getattr(event, "result", None) is not None:
                self._result_bytes.observe(len(sealed.canonical))
            if isinstance(event, Started):
                self._started.inc()
            elif type(event) in _ENDS:
                self._ended.labels(_ENDS[type(event)]).inc()
            elif type(event) in _COMMANDS:
                self._command(sealed)
            elif type(event) in _FRAMES:
                self._frame(sealed)

    def measured(self, measure: Measure, value: float) -> None:
        if measure in self._measured:
            self._measured[measure].observe(value)
        elif measure in _LEASES:
            self._leases.labels(_LEASES[measure]).inc(value)
        else:
            self._others(measure).inc(value)

    def _others(self, measure: Measure) -> Counter:
        match measure:
            case "claim_refused":
                return self._refused
            case "turn_lost":
                return self._turns_lost
            case _:
                return self._projected

    def _command(self, sealed: SealedEvent) -> None:
        event = sealed.event
        self._commands.labels(_COMMANDS[type(event)]).inc()
        if isinstance(event, (CommandCompleted, CommandFailed)):
            self._command_seconds.observe((event.duration_ms or 0) / 1_000)

    def _frame(self, sealed: SealedEvent) -> None:
        event, frame = sealed.event, sealed.envelope.frame_id or FrameId("")
        now = sealed.envelope.event_time
        self._frames.labels(_FRAMES[type(event)]).inc()
        if isinstance(event, FrameDispatched | ShardEnqueued):
            if len(self._begun) < TIMED_MAX:
                self._begun[frame] = now
            return
        began = self._begun.pop(frame, None)
        if began is not None:
            self._frame_seconds.observe(max(0.0, seconds_between(began, now)))
        if isinstance(event, FrameCommitted):
            failed, broken = event.failed_rows, event.broken_rows
            self._rows_of(event.row_count, failed, broken)
        elif isinstance(event, ShardDone):
            self._rows_of(1, 0, 0)
        elif isinstance(event, ShardFailed) and event.final:
            self._rows_of(1, 1, 0)

    def _rows_of(self, count: int, failed: int, broken: int) -> None:
        self._frame_rows.observe(count)
        done = count - failed - broken
        for status, rows in (("ok", done), ("failed", failed), ("broken", broken)):
            self._rows.labels(status).inc(max(0, rows))
