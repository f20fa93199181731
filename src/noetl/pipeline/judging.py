"""What the end of a task means: the rule that applies, what it writes, and how long to wait."""

from collections.abc import Callable, Iterable

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.events.values import Failure
from noetl.domain.playbook.task import Action, Continue, Fail, Retry, Rule
from noetl.domain.playbook.values import Assignment
from noetl.kernel.canonical_json import check_plain
from noetl.pipeline import emits
from noetl.pipeline.cycle import Cycle, Tried
from noetl.pipeline.evaluation import Source
from noetl.pipeline.failures import FAILED_BY_RULE
from noetl.pipeline.retry import bounded, pause_seconds, spread
from noetl.pipeline.sight import Sight
from noetl.templates import places
from noetl.templates.bindings import Bindings
from noetl.templates.layered import Outcome, names_error

CONTINUE = Continue()
FAIL = Fail()


class Judging:
    __slots__ = ("_sight",)

    def __init__(self, sight: Sight) -> None:
        self._sight = sight

    async def rule(self, cycle: Cycle, tried: Tried) -> Rule | None:
        """The first whose `when` holds; one that raises is passed over."""
        names, has_error = self._rule_names(cycle, tried), names_error(tried.outcome)
        for planned in cycle.plan.rules:
            if planned.needs_error and not has_error:
                continue
            if await self._sight.evaluation.holds(planned.rule.when, names):
                return planned.rule
        return None

    async def pause(self, cycle: Cycle, tried: Tried, retry: Retry) -> float | None:
        """Seconds until the next try; None when there have been enough."""
        number, names = self._sight.evaluation.number, self._rule_names(cycle, tried)
        place = f"retry of {cycle.plan.name}"
        attempts = await number(retry.attempts, names, f"attempts in a {place}")
        if tried.attempt >= (attempts or 0):
            return None
        delay = await number(retry.delay, names, f"delay in a {place}") or 0.0
        longest = await number(retry.delay_max, names, f"max_delay in a {place}")
        multiplier = await number(retry.multiplier, names, f"multiplier in a {place}") or 0.0
        pause = pause_seconds(retry.backoff, delay, multiplier, tried.attempt)
        jitter = await self._jitter(retry, names, place)
        pause = bounded(pause, longest)
        if jitter:
            pause = bounded(spread(pause, jitter, self._sight.evaluation.fraction()), longest)
        return pause

    async def assign_task(self, cycle: Cycle, tried: Tried, only: Iterable[Assignment]) -> None:
        await self._assign(cycle, only, self.set_names(cycle, tried))

    async def assign_rule(self, cycle: Cycle, tried: Tried, only: Iterable[Assignment]) -> None:
        await self._assign(cycle, only, self._rule_names(cycle, tried))

    async def emitted(self, cycle: Cycle, tried: Tried) -> list[BusinessObjectChanged]:
        names = self.set_names(cycle, tried)
        return await emits.changes(cycle.plan.task.emit, self._sight.evaluation, names)

    def set_names(self, cycle: Cycle, tried: Tried) -> Source:
        return _over(self._task_names(cycle, tried), places.for_set, tried.outcome)

    def _rule_names(self, cycle: Cycle, tried: Tried) -> Source:
        return _over(self._task_names(cycle, tried), places.for_rule, tried.outcome)

    def _task_names(self, cycle: Cycle, tried: Tried) -> Source:
        names = self._sight.names
        return lambda: names.for_task(cycle.plan.name, tried.attempt, tried.given)

    async def _jitter(self, retry: Retry, names: Source, place: str) -> bool | float:
        if isinstance(retry.jitter, bool | float | int):
            return retry.jitter
        value = await self._sight.evaluation.value(retry.jitter, names)
        if isinstance(value, bool):
            return value
        return await self._sight.evaluation.number(value, names, f"jitter in a {place}") or 0.0

    async def _assign(self, cycle: Cycle, assignments: Iterable[Assignment], names: Source) -> None:
        """In order: a value may use what was written before it."""
        for each in assignments:
            value = await self._sight.evaluation.value(each.value, names)
            key = key_of(each)
            check_plain(value, key)
            self._sight.names.write(each.scope, each.name, value)
            cycle.writes[key] = value


def _over(task: Source, place: Callable[[Bindings, Outcome], Bindings], outcome: Outcome) -> Source:
    """The task's names with its outcome, made once for as long as the task's are the same."""
    made: tuple[Bindings, Bindings] | None = None

    def names() -> Bindings:
        nonlocal made
        below = task()
        if made is None or made[0] is not below:
            made = (below, place(below, outcome))
        return made[1]

    return names


def key_of(assignment: Assignment) -> str:
    """`ctx.total`: where a value goes, as it is recorded."""
    return f"{assignment.scope}.{assignment.name}"


def default_action(tried: Tried) -> Action:
    """When no rule applies: a result goes on, an error fails."""
    return CONTINUE if tried.failure is None else FAIL


def failure_by_rule(cycle: Cycle) -> Failure:
    message = f"{cycle.plan.name} gave a result that one of its rules calls a failure"
    return Failure(kind="unknown", message=message, code=FAILED_BY_RULE)
