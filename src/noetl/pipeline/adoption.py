"""Cycles that an earlier holder recorded: taken over instead of run again.

Their results and writes come from the record. Rules are asked again, over the recorded end, which
way the row goes on; so an adopted row takes the way that the first one took.
"""

from collections.abc import Iterator
from typing import Any

from noetl.domain.playbook.task import Fail, Retry, Rule
from noetl.domain.playbook.values import SetScope
from noetl.domain.work import Call
from noetl.pipeline.attempts import Attempts
from noetl.pipeline.cycle import Cycle, Ending, Tried, outcome_of_failure, outcome_of_result
from noetl.pipeline.failures import ENDED_THE_ROW
from noetl.pipeline.job import Job
from noetl.pipeline.judging import FAIL, Judging, default_action, failure_by_rule
from noetl.pipeline.sight import Sight
from noetl.pipeline.workshop import Workshop
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of

_SCOPES: dict[str, SetScope] = {"ctx": "ctx", "iter": "iter", "step": "step", "task": "task"}


class Adoption:
    __slots__ = ("_job", "_judging", "_sight", "_workshop")

    def __init__(self, workshop: Workshop, job: Job, sight: Sight, judging: Judging) -> None:
        self._workshop = workshop
        self._job = job
        self._sight = sight
        self._judging = judging

    async def tried(self, cycle: Cycle, call: Call, attempts: Attempts) -> Tried | None:
        """The recorded end as if it had just come; None: it is no end to go on from."""
        failure = call.error
        if failure is not None and failure.code in ENDED_THE_ROW:
            return None
        value = await self._value(call)
        meta = {"attempt": call.tries, "duration_ms": call.duration_ms}
        if failure is not None:
            outcome = outcome_of_failure(failure, value, meta)
        elif call.result is not None:
            outcome = outcome_of_result(call.result, value, meta)
        else:
            return None
        given = await attempts.input(cycle, call.tries) if cycle.plan.judges_input else {}
        return Tried(outcome, failure, call.tries, given, call.duration_ms)

    async def ending(self, cycle: Cycle, call: Call, tried: Tried) -> Ending | None:
        """None for an error that the rules do not go on from: the call is run again."""
        rule = await self._judging.rule(cycle, tried)
        action = default_action(tried) if rule is None else rule.action
        if isinstance(action, Retry | Fail):
            # A result stays: it is not fired again because a rule has changed its mind.
            return None if tried.failure is not None else Ending(FAIL, failure_by_rule(cycle))
        for key in _in_order(cycle, rule, call.writes):
            scope, _, path = key.partition(".")
            self._sight.names.write(_SCOPES[scope], path, call.writes[key])
        if tried.has_result:
            # Large values for later tasks are not recorded: they are made from the result again.
            left_out = [
                each
                for each in cycle.plan.task.set
                if each.scope == "task" and f"task.{each.name}" not in call.writes
            ]
            await self._judging.assign_task(cycle, tried, left_out)
        return Ending(action)

    async def _value(self, call: Call) -> Any:
        result = call.result
        if result is None:
            return None
        if result.reference is None:
            return plain_result(value_of(result))
        uri = result.reference.uri
        content = await self._workshop.contents.get(self._job.scope, uri)
        return plain_result(value_of(result, {uri: content}))


def _in_order(cycle: Cycle, rule: Rule | None, writes: dict[str, Any]) -> Iterator[str]:
    """As they were written: a record knows no order."""
    written = [*cycle.plan.task.set, *(() if rule is None else rule.set)]
    keys = [f"{each.scope}.{each.name}" for each in written]
    yield from sorted(writes, key=lambda key: (keys.index(key) if key in keys else -1, key))
