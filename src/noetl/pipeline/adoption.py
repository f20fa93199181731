"""Cycles that an earlier holder recorded: taken over instead of run again.

Their results and writes come from the record. Rules are asked again, over the recorded end, which
way the row goes on; so an adopted row takes the way that the first one took.
"""

from typing import Any

from noetl.domain.playbook.task import Fail, Retry
from noetl.domain.playbook.values import Assignment, SetScope
from noetl.domain.work import Call
from noetl.pipeline.attempts import Attempts
from noetl.pipeline.cycle import Cycle, Ending, Tried, outcome_of_failure, outcome_of_result
from noetl.pipeline.failures import ENDED_THE_ROW
from noetl.pipeline.job import Job
from noetl.pipeline.judging import FAIL, Judging, default_action, failure_by_rule, key_of
from noetl.pipeline.sight import Sight
from noetl.pipeline.workshop import Workshop
from noetl.templates.layered import plain_result
from noetl.templates.recorded import stored_result, value_of
from noetl.templates.table_rows import as_lists, has_tables

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
        await self._write(cycle, call, tried, () if rule is None else rule.set)
        return Ending(action)

    async def _write(
        self, cycle: Cycle, call: Call, tried: Tried, by_rule: tuple[Assignment, ...]
    ) -> None:
        """In the order of the playbook: a record knows none. What was too large is made again."""
        by_task = cycle.plan.task.set if tried.has_result else ()
        assigned = {key_of(each) for each in (*by_task, *by_rule)}
        for key in sorted(call.writes.keys() - assigned):  # of rules that asked for another try
            self._adopt(key, call)
        for each in by_task:
            if not self._adopt(key_of(each), call):
                await self._judging.assign_task(cycle, tried, [each])
        for each in by_rule:
            if not self._adopt(key_of(each), call):
                await self._judging.assign_rule(cycle, tried, [each])

    def _adopt(self, key: str, call: Call) -> bool:
        if key not in call.writes:
            return False
        scope, _, path = key.partition(".")
        self._sight.names.write(_SCOPES[scope], path, call.writes[key])
        return True

    async def _value(self, call: Call) -> Any:
        result = call.result
        if result is None:
            return None
        if result.reference is None:
            return plain_result(value_of(result))
        uri = result.reference.uri
        content = await self._workshop.contents.get(self._job.scope, uri, result.reference)
        value = plain_result(value_of(result, {uri: content}))
        if not has_tables(value):
            return value
        return as_lists(value) if self._job.is_in_loop else stored_result(result, value)
