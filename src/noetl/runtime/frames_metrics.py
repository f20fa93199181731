"""The time of a frame's tasks: of all its rows together, by task and by kind of tool."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from noetl.pipeline.job import RowResult
from noetl.pipeline.timing import TaskTime

_PARTS: Final = ("task_ms", "render_ms", "tool_ms")
_SUMMED: Final = ("tries", *_PARTS)

Numbers = dict[str, Any]


def task_numbers(results: Sequence[RowResult]) -> Numbers:
    """Milliseconds; of rows that ran side by side they may come to more than the frame took.
    A task's are rounded once, so that they add up to what stands above them."""
    by_task = {name: _of_task(spent) for name, spent in _added(results).items()}
    by_kind: dict[str, Numbers] = {}
    for numbers in by_task.values():
        kind = by_kind.setdefault(numbers["kind"], dict.fromkeys(_SUMMED, 0))
        for name in _SUMMED:
            kind[name] += numbers[name]
    totals = {f"total_{part}": sum(each[part] for each in by_kind.values()) for part in _PARTS}
    task_ms = {name: numbers["task_ms"] for name, numbers in by_task.items()}
    return {**totals, "task_ms": task_ms, "by_task": by_task, "by_kind": by_kind}


def _added(results: Sequence[RowResult]) -> Mapping[str, TaskTime]:
    total: dict[str, TaskTime] = {}
    for result in results:
        for name, spent in result.times.items():
            together = total.get(name)
            if together is None:
                together = total[name] = TaskTime(spent.kind)
            together.tries += spent.tries
            together.seconds += spent.seconds
            together.render_seconds += spent.render_seconds
            together.tool_seconds += spent.tool_seconds
    return total


def _of_task(spent: TaskTime) -> Numbers:
    return {
        "kind": spent.kind,
        "tries": spent.tries,
        "task_ms": round(1_000 * spent.seconds),
        "render_ms": round(1_000 * spent.render_seconds),
        "tool_ms": round(1_000 * spent.tool_seconds),
    }
