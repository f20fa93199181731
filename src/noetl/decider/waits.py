"""Waiting without a worker: a step that only waits is claimed by the clock, until it is due.

The claim records when that is, once, on the clock of the events. Whoever starts up after a crash
finds it in the log like any other claim; the reaper ends it when its time has come.
"""

from collections.abc import Mapping
from typing import Any

from noetl.decider.answers import Decided
from noetl.decider.evaluate import evaluated
from noetl.decider.view import View
from noetl.domain.events import CommandClaimed, CommandFailed, CommandStarted
from noetl.domain.events.values import Failure
from noetl.domain.execution.rows import CommandRow
from noetl.domain.playbook.model import Step
from noetl.domain.playbook.task import Task
from noetl.domain.playbook.wording import shown
from noetl.dsl.language.shapes import duration_seconds
from noetl.kernel.errors import TimeInvalid
from noetl.kernel.ids import WorkerId
from noetl.kernel.instant import Instant, parse, plus
from noetl.templates.errors import TemplateError

WAIT = "wait"
TIMER = WorkerId("@timer")
"""Who holds a command that only waits. No worker has such a name, and nobody has to renew it."""

WAIT_SECONDS_MAX = 10 * 365 * 86_400


class WaitInvalid(ValueError):
    """What a wait was given is no time; says what to write."""


def is_timer(step: Step | None) -> bool:
    """Whether the step does nothing but wait: what else it had would need a worker."""
    if step is None or step.loop is not None or len(step.tasks) != 1:
        return False
    if step.input or step.emit or step.timeout is not None:
        return False
    (task,) = step.tasks
    return task == Task(name=task.name, kind=WAIT, parameters=task.parameters)


def is_held_by_clock(row: CommandRow) -> bool:
    return row.worker_id == TIMER


def timers_set(view: View) -> list[Decided]:
    """Claims of the clock for commands that only wait."""
    decided: list[Decided] = []
    for row in view.state.commands.values():
        step = view.plan.playbook.steps.get(row.step)
        if step is not None and row.status == "PENDING" and is_timer(step):
            decided += _claimed(view, step, row)
    return decided


def due_of(parameters: Mapping[str, Any], now: Instant) -> Instant:
    """When a wait that begins now is over. Raises WaitInvalid."""
    until = parameters.get("until")
    try:
        if until is not None:
            return max(parse(str(until)), now)
        return plus(now, seconds=_seconds(parameters.get("seconds")))
    except TimeInvalid as error:
        raise WaitInvalid(
            f"`until` is {shown(until)!r}; write a time with its zone, such as 2030-01-31T08:00:00Z"
        ) from error


def _claimed(view: View, step: Step, row: CommandRow) -> list[Decided]:
    claim = row.claim + 1
    try:
        parameters = evaluated(step.tasks[0].parameters, view.bindings(step.name))
        due = due_of(parameters, _now(view))
    except (TemplateError, WaitInvalid) as error:
        kind = "template" if isinstance(error, TemplateError) else "client_error"
        failure = Failure(kind=kind, message=f"the wait of step {step.name!r}: {error}")
        return [_about(row, CommandFailed(error=failure, worker_id=TIMER, claim=claim))]
    held = CommandClaimed(worker_id=TIMER, claim=claim, lease_until=due)
    return [_about(row, held), _about(row, CommandStarted(worker_id=TIMER, claim=claim))]


def _about(row: CommandRow, event: CommandClaimed | CommandStarted | CommandFailed) -> Decided:
    return Decided(event=event, command_id=row.command_id)


def _now(view: View) -> Instant:
    now = view.state.now
    assert now is not None, "a command was issued by an event, and every event has its time"
    return now


def _seconds(given: Any) -> float:
    seconds: Any = duration_seconds(given) if isinstance(given, str) else given
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise WaitInvalid(
            f"`seconds` is {shown(given)!r}; write a number of seconds, or a duration such as 30s"
        )
    return float(seconds)
