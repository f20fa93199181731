"""Entries of the effect ledger: what became of one cycle, or of a number of them."""

from typing import Any, Literal

import msgspec

from noetl.kernel.ids import EventId, StepName
from noetl.kernel.instant import Instant

EffectState = Literal["fired", "repeated", "in_doubt"]
_AFTER_STEP = 4
"""Parts of a cycle behind its step: visit, iteration, task, run."""


class EffectEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle, or the cycles of a frame that are known by their number alone."""

    cycle: str  # execution/step/visit/iteration/task/run, as far as it is known
    step: StepName
    task: str | None = None  # None: any of the step's tasks
    run: int = 1
    state: EffectState
    event_id: EventId
    time: Instant
    adopted: bool = False  # a later holder took it over instead of firing it again
    count: int = 1
    doubts: int = 0  # holders that were lost and may have fired it, beside the one that told


class EffectCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Of all cycles, those without a name of their own included."""

    fired: int = 0  # the adopted ones included
    adopted: int = 0
    repeated: int = 0
    in_doubt: int = 0


def counted(entries: list[EffectEntry]) -> EffectCounts:
    def total(state: EffectState) -> int:
        return sum(entry.count for entry in entries if entry.state == state)

    return EffectCounts(
        fired=total("fired"),
        adopted=sum(entry.count for entry in entries if entry.adopted),
        repeated=total("repeated"),
        in_doubt=total("in_doubt"),
    )


class Named(msgspec.Struct, frozen=True):
    """Cycles of a frame, of which only the first ones are named."""

    cycles: list[str]
    count: int

    @classmethod
    def of(cls, state: str, metrics: dict[str, Any], counts: dict[str, Any]) -> "Named":
        cycles = [str(cycle) for cycle in metrics.get(state, ())]
        return cls(cycles, max(len(cycles), int(counts.get(state, 0))))


def listed(named: Named, like: EffectEntry) -> list[EffectEntry]:
    """The cycles that have names, then how many have none."""
    entries = [_of_cycle(cycle, like) for cycle in named.cycles]
    rest = named.count - len(named.cycles)
    return [*entries, msgspec.structs.replace(like, count=rest)] if rest > 0 else entries


def _of_cycle(cycle: str, entry: EffectEntry) -> EffectEntry:
    parts = cycle.rsplit("/", _AFTER_STEP)
    if len(parts) <= _AFTER_STEP or not parts[-1].isdecimal():
        return msgspec.structs.replace(entry, cycle=cycle)
    return msgspec.structs.replace(entry, cycle=cycle, task=parts[-2], run=int(parts[-1]))
