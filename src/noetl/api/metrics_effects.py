"""Effects at the barrier, counted as they become durable: by what became of them, and by tool."""

from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from noetl.domain.events import (
    CallDone,
    CallFailed,
    CommandClaimed,
    FrameCommitted,
    ShardDone,
    ShardFailed,
)
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import CommandId, ExecutionId, StepName
from noetl.runtime.effects import IN_DOUBT_KIND
from noetl.runtime.running import Running

OUTCOMES = ("fired", "adopted", "repeated", "in_doubt")
UNKNOWN = "unknown"
"""The tool of an effect that was told without one, as older workers do."""


class EffectsCounted:
    """Each effect is counted once: one that ran again is `repeated`, and no plain fire."""

    def __init__(self, registry: CollectorRegistry, running: Mapping[ExecutionId, Running]) -> None:
        self._running = running
        self._effects = Counter(
            "noetl_worker_side_effect_barrier",
            "Effects at the barrier, by what became of them.",
            ["outcome", "tool"],
            registry=registry,
        )

    def heard(self, execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        for sealed in events:
            event = sealed.event
            if isinstance(event, (CallDone, CallFailed)):
                self._call(execution, event)
            elif isinstance(event, (FrameCommitted, ShardDone, ShardFailed)):
                self._frame(event)
            elif isinstance(event, CommandClaimed):
                self._adopted(execution, sealed.envelope.command_id)

    def _call(self, execution: ExecutionId, event: CallDone | CallFailed) -> None:
        outcome = event.effect
        if isinstance(event, CallFailed) and event.error.kind == IN_DOUBT_KIND:
            outcome = "in_doubt"
        if outcome in OUTCOMES:
            self._effects.labels(outcome, self._tool(execution, event.step, event.task)).inc()

    def _adopted(self, execution: ExecutionId, command: CommandId | None) -> None:
        """A holder is handed the calls that were recorded before it came; most have none."""
        running = self._running.get(execution)
        state = None if running is None else running.state
        row = None if state is None or command is None else state.commands.get(command)
        if state is None or row is None:
            return
        for call in state.calls.get(row.command_id, ()):
            if call.effect is not None and call.error is None:
                self._effects.labels("adopted", self._tool(execution, row.step, call.task)).inc()

    def _frame(self, event: FrameCommitted | ShardDone | ShardFailed) -> None:
        """A shard is a frame of one row, and may have fired before it failed."""
        by_tool = event.metrics.get("effects_by_tool")
        if not isinstance(by_tool, dict):
            by_tool = {UNKNOWN: _disjoint(event.metrics.get("effects"))}
        for tool, counts in by_tool.items():
            for outcome in OUTCOMES:
                count = counts.get(outcome, 0) if isinstance(counts, dict) else 0
                if isinstance(count, int) and count > 0:
                    self._effects.labels(outcome, tool).inc(count)

    def _tool(self, execution: ExecutionId, step: StepName, task: str | None) -> str:
        running = self._running.get(execution)
        found = None if running is None else running.plan.playbook.steps.get(step)
        tasks = () if found is None else found.tasks
        return next((each.kind for each in tasks if each.name == task), UNKNOWN)


def _disjoint(told: Any) -> dict[str, Any]:
    """The sum that a frame tells counts what ran again among what fired."""
    effects = dict(told) if isinstance(told, dict) else {}
    fired, repeated = effects.get("fired"), effects.get("repeated")
    if isinstance(fired, int) and isinstance(repeated, int):
        effects["fired"] = fired - repeated
    return effects
