"""The bounds of a stage: what the author said of frames and rows, rendered when it opens."""

import math
from typing import Any

from noetl.decider.engines import engine_policy
from noetl.decider.evaluate import evaluated
from noetl.decider.fanout import fanout_policy
from noetl.decider.view import View
from noetl.domain.playbook.loop import Cursor, Loop
from noetl.domain.playbook.model import FailureMode, Step
from noetl.templates.bindings import Bindings
from noetl.templates.errors import TemplateFailed

WAITING_ROWS_A_SLOT = 16
"""Rows at once when their tools mostly wait for others and the author set no bound."""

ROWS_PER_SLOT = 16
"""The same, in a slot of an engine."""

NEEDS_A_ROW = "needs_a_row"
"""Of a cursor whose author said nothing of failed rows: some may fail, but not all of them."""

_BUSY_KINDS = frozenset({"python", "duckdb", "sqlite", "shell", "spark"})


def policy_of(view: View, step: Step, loop: Loop, bindings: Bindings, size: int) -> dict[str, Any]:
    """The bounds of frames and rows, rendered once and recorded."""
    frame = loop.frame
    chosen = {
        "max_in_flight": loop.max_in_flight,
        "max_rows": frame.rows_max,
        "max_seconds": frame.seconds_max,
        "max_bytes": frame.bytes_max,
        "lease_seconds": frame.lease_seconds,
        "heartbeat_seconds": frame.heartbeat_seconds,
        "row_concurrency": frame.row_concurrency,
        "max_attempts": frame.attempts_max,
        "max_iterations": _frames_max(loop),
    }
    policy = {
        name: _number(name, evaluated(value, bindings))
        for name, value in chosen.items()
        if value is not None
    }
    failure = step.policy.failure
    engine = engine_policy(view, step, loop, size)
    slots = view.engine_slots if engine else view.processors
    is_busy = any(task.kind in _BUSY_KINDS for task in step.tasks)
    if loop.mode == "sequential":
        policy |= {"max_in_flight": 1, "row_concurrency": 1}
    elif loop.mode == "cursor":
        defaults = {"max_in_flight": slots, "max_rows": 1, "row_concurrency": 1}
        policy, failure = {**defaults, **policy}, _failure_of_cursor(step)
        if not step.policy.is_failure_given:
            policy[NEEDS_A_ROW] = True
    elif engine and loop.mode == "parallel":
        policy = _for_slots(policy, slots, 1 if is_busy else ROWS_PER_SLOT)
    elif "max_in_flight" not in policy:
        policy["max_in_flight"] = slots * (1 if is_busy else WAITING_ROWS_A_SLOT)
    if loop.mode == "fanout":
        policy |= fanout_policy(loop.fanout, bindings)
    return {"failure": failure, **policy, **engine, "process": frame.process}


def _for_slots(policy: dict[str, Any], slots: int, rows: int) -> dict[str, Any]:
    """Every slot has a frame, and as many of its rows at once as a slot is good for."""
    in_flight = policy.get("max_in_flight", slots * rows)
    return {"row_concurrency": min(rows, in_flight), **policy, "max_in_flight": in_flight}


def _failure_of_cursor(step: Step) -> FailureMode:
    return step.policy.failure if step.policy.is_failure_given else "continue"


def _frames_max(loop: Loop) -> Any:
    return loop.over.options.get("max_iterations") if isinstance(loop.over, Cursor) else None


def _number(name: str, value: Any) -> float:
    """Lengths of time are numbers above 0; everything else is counted, from 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0
    if name.endswith("_seconds"):
        if number <= 0 or not math.isfinite(number):
            raise TemplateFailed(f"{name} is {value!r}; use a number above 0")
        return number
    if number < 1 or not number.is_integer():
        raise TemplateFailed(f"{name} is {value!r}; use a whole number from 1")
    return int(number)
