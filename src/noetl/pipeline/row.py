"""One row from its first task to its end: tasks in order, and what their rules make of it."""

import asyncio
from typing import Any, Final

import msgspec

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.events.values import Failure, Result
from noetl.domain.playbook.task import Action, Break, Fail, Jump, Retry, Rule
from noetl.domain.work import Call
from noetl.pipeline import emits
from noetl.pipeline.adoption import Adoption
from noetl.pipeline.attempts import Attempts
from noetl.pipeline.cycle import (
    Cycle,
    Ending,
    Tried,
    with_detail,
    with_envelope,
    without_envelope,
)
from noetl.pipeline.effects import Effects
from noetl.pipeline.failures import EXPECTED, STEP_TIMEOUT, endless, failure_of
from noetl.pipeline.job import Hold, Job, Journal, RowResult, RowStatus
from noetl.pipeline.judging import FAIL, Judging, default_action, failure_by_rule
from noetl.pipeline.keeping import keeping_of_task, name_of
from noetl.pipeline.pauses import paused
from noetl.pipeline.sight import Sight
from noetl.pipeline.timing import TaskTime
from noetl.pipeline.workshop import Workshop
from noetl.templates import places
from noetl.templates.layered import Outcome, PipelineResult, plain_result

TASK_RUNS_MAX: Final = 1_000_000
YIELD_EVERY_RUNS: Final = 256
"""A pipeline that jumps for a long time lets the others have their turn."""


class Row:
    def __init__(self, workshop: Workshop, job: Job, journal: Journal, hold: Hold) -> None:
        self._workshop = workshop
        self._job = job
        self._hold = hold
        self._plan = workshop.plans.of(job.playbook, job.step)
        self._coordinates = job.coordinates
        self._sight = Sight(workshop, job)
        self._effects = Effects(job, journal, workshop.contents.store)
        self._attempts = Attempts(workshop, job, self._sight, self._effects)
        self._judging = Judging(self._sight)
        self._runs: dict[str, int] = {}
        self._tries: dict[str, int] = {}  # since the task last succeeded
        self._times: dict[str, TaskTime] = {}
        self._emitted: list[BusinessObjectChanged] = []
        self._value: Any = None  # of the task that ended last
        self._result: Result | None = None  # the same, if it was recorded
        self._open: Cycle | None = None
        self._last: tuple[str, int] | None = None  # task and run of the newest result

    async def run(self) -> RowResult:
        if self._job.step.timeout is None:
            return await self._tasks()
        names, what = self._sight.names.base, f"the timeout of step {self._job.step.name}"
        try:
            seconds = await self._sight.evaluation.number(self._job.step.timeout, names, what)
        except EXPECTED as error:
            return self._ended("failed", failure_of(error))
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._tasks()
        except TimeoutError:
            if not limit.expired():
                raise
            return self._timed_out(seconds or 0.0)

    async def _tasks(self) -> RowResult:
        tasks, position, runs = self._plan.tasks, 0, 0
        while position < len(tasks):
            runs += 1
            if runs > TASK_RUNS_MAX:
                return self._ended("failed", endless(self._job.step.name, TASK_RUNS_MAX))
            if runs % YIELD_EVERY_RUNS == 0:
                await self._workshop.clock.sleep(0)
            ending = await self._cycle(self._cycle_of(position))
            match ending.action:
                case Fail():
                    return self._ended("failed", ending.failure)
                case Break():
                    return await self._succeeded("break")
                case Jump(to=to):
                    try:
                        position = self._plan.target(position, to)
                    except EXPECTED as error:
                        return self._ended("failed", failure_of(error))
                case _:
                    position += 1
        return await self._succeeded("ok")

    def _cycle_of(self, position: int) -> Cycle:
        plan = self._plan.tasks[position]
        run = self._runs[plan.name] = self._runs.get(plan.name, 0) + 1
        key = f"{self._coordinates}/{plan.name}/{run}"
        spent = self._times.get(plan.name) or TaskTime(plan.kind)
        return Cycle(plan, run, key, spent, after=self._last)

    async def _cycle(self, cycle: Cycle) -> Ending:
        name, recorded = cycle.plan.name, self._effects.recorded(cycle)
        if self._effects.is_doubtful and not self._effects.has_end(recorded):
            recorded = await self._effects.staged(cycle) or recorded
        if recorded is not None:
            ending = await self._adopt(cycle, recorded)
            if ending is not None:
                return ending
            if not self._effects.has_end(recorded):
                self._tries[name] = recorded.tries  # an earlier holder was lost between two tries
        while True:
            self._open = cycle
            attempt = self._tries[name] = self._tries.get(name, 0) + 1
            tried = await self._attempts.one(cycle, attempt, self._hold)
            self._times[name] = cycle.spent
            if cycle.plan.is_simple:
                return await self._close(cycle, tried, Ending(default_action(tried)))
            ending = await self._judge(cycle, tried)
            if ending is not None:
                return await self._close(cycle, tried, ending)

    async def _adopt(self, cycle: Cycle, recorded: Call) -> Ending | None:
        """None: the call failed for good, and whoever runs the row again wants it run again."""
        adoption = Adoption(self._workshop, self._job, self._sight, self._judging)
        try:
            tried = await adoption.tried(cycle, recorded, self._attempts)
            ending = None if tried is None else await adoption.ending(cycle, recorded, tried)
            if tried is None or ending is None:
                return None
            if tried.has_result and not isinstance(ending.action, Fail):
                self._emitted += await self._judging.emitted(cycle, tried)
        except EXPECTED as error:
            return Ending(FAIL, failure_of(error))
        self._effects.adopt(cycle, recorded)
        self._tries[cycle.plan.name] = recorded.tries
        self._left(cycle, tried)
        if recorded.result is not None and not self._job.step.is_pipeline:
            self._result = without_envelope(recorded.result)
        return ending

    async def _judge(self, cycle: Cycle, tried: Tried) -> Ending | None:
        """None: try again, the pause is over."""
        try:
            rule = await self._judging.rule(cycle, tried)
            action = default_action(tried) if rule is None else rule.action
            if isinstance(action, Retry):
                pause = await self._judging.pause(cycle, tried, action)
                await self._judging.assign_rule(cycle, tried, () if rule is None else rule.set)
                if pause is None:
                    return Ending(FAIL)
                self._effects.tried(cycle, tried.attempt)
                await paused(pause, self._hold, self._workshop.clock)
                return None
            await self._apply(cycle, tried, rule, action)
        except EXPECTED as error:
            return Ending(FAIL, failure_of(error))
        return Ending(action)

    async def _apply(self, cycle: Cycle, tried: Tried, rule: Rule | None, action: Action) -> None:
        """The task's own `set` first: what a rule writes may use it."""
        goes_on = tried.has_result and not isinstance(action, Fail)
        if goes_on and cycle.plan.task.set:
            await self._judging.assign_task(cycle, tried, cycle.plan.task.set)
        if rule is not None and rule.set:
            await self._judging.assign_rule(cycle, tried, rule.set)
        if goes_on and cycle.plan.task.emit:
            self._emitted += await self._judging.emitted(cycle, tried)

    async def _close(self, cycle: Cycle, tried: Tried, ending: Ending) -> Ending:
        """Leave the result to the tasks that follow, and the effect to be recorded."""
        tried = await self._attempts.stored(cycle, tried) if self._attempts.has_tables else tried
        failure = ending.failure or tried.failure
        if isinstance(ending.action, Fail):
            failure = failure or failure_by_rule(cycle)
            # Arcs that answer to the failure may ask what the target said.
            ending = Ending(ending.action, with_detail(failure, tried.outcome))
        self._left(cycle, tried)
        if cycle.note is not None or cycle.is_refused:
            await self._effects.ended(await self._call(cycle, tried, failure))
        self._open = None
        return ending

    def _left(self, cycle: Cycle, tried: Tried) -> None:
        name = cycle.plan.name
        if tried.failure is None:
            self._tries.pop(name, None)
        if tried.has_result:
            self._last = (name, cycle.run)
        self._value, self._result = tried.outcome.result, None
        self._sight.names.ended(name, tried.outcome, has_result=tried.has_result)

    async def _call(self, cycle: Cycle, tried: Tried, failure: Failure | None) -> Call:
        result = None
        outcome = tried.outcome
        if tried.has_result:
            value = self._sight.secrets.scrub(outcome.result)
            result = await self._recorded(cycle, value, outcome.status)
            result = with_envelope(result, outcome)
        if failure is not None:
            failure = self._scrubbed(with_detail(failure, outcome))
        return Call(
            task=cycle.plan.name,
            run=cycle.run,
            result=result,
            error=failure,
            writes=self._sight.secrets.scrub(cycle.kept_writes()),
            effect=cycle.note,
            tries=tried.attempt,
            duration_ms=tried.duration_ms,
        )

    async def _recorded(self, cycle: Cycle, value: Any, status: str) -> Result:
        keeping = keeping_of_task(self._job.step, cycle.plan.task, self._parent(cycle.after))
        name = name_of(self._job, cycle.plan.name, cycle.run)
        result = await keeping.record(self._workshop.contents.store, name, value, status)
        if not self._job.step.is_pipeline:
            self._result = result
        return result

    def _parent(self, before: tuple[str, int] | None) -> str | None:
        """Every result has a name, whether it is stored under it or not."""
        return None if before is None else name_of(self._job, *before).uri

    async def _succeeded(self, status: RowStatus) -> RowResult:
        if self._job.step.emit:
            value = self._own_value()
            names = self._sight.names

            def source() -> Any:
                return places.for_set(names.base(), Outcome(result=value))

            try:
                evaluation = self._sight.evaluation
                self._emitted += await emits.changes(self._job.step.emit, evaluation, source)
            except EXPECTED as error:
                return self._ended("failed", failure_of(error))
        return self._ended(status, None)

    def _timed_out(self, seconds: float) -> RowResult:
        message = f"step {self._job.step.name} took longer than {seconds:g} seconds"
        failure = Failure(
            kind="timeout",
            message=f"{message}; raise its timeout, or give it less to do",
            retryable=True,
            code=STEP_TIMEOUT,
        )
        cycle = self._open
        if cycle is not None and cycle.note is not None:
            name = cycle.plan.name
            tries = self._tries.get(name, 1)
            call = Call(task=name, run=cycle.run, error=failure, effect=cycle.note, tries=tries)
            self._effects.pending.append(call)
        return self._ended("failed", failure)

    def _own_value(self) -> Any:
        if self._job.step.is_pipeline:
            return PipelineResult(dict(self._sight.names.done))
        return self._value

    def _leaving_value(self) -> Any:
        """Without secrets; of a row of a loop what it is worth, which is all that is kept of it."""
        scrub, done = self._sight.secrets.scrub, self._sight.names.done
        if not self._job.step.is_pipeline:
            return scrub(self._value)
        if self._job.is_in_loop:
            return scrub(plain_result(next(reversed(done.values()), None)))
        return PipelineResult(scrub(dict(done)))

    def _ended(self, status: RowStatus, failure: Failure | None) -> RowResult:
        scrub, effects = self._sight.secrets.scrub, self._effects
        return RowResult(
            status=status,
            value=self._leaving_value(),
            recorded=self._result,
            parent=self._parent(self._last) if self._job.is_whole_step else None,
            error=None if failure is None else self._scrubbed(failure),
            writes=scrub(self._sight.names.writes),
            emitted=emits.scrubbed(self._emitted, scrub) if self._emitted else (),
            calls=tuple(effects.pending),
            times=self._times,
            fired=effects.fired,
            adopted=tuple(effects.adopted),
            repeated=tuple(effects.repeated),
            in_doubt=tuple(effects.in_doubt),
            outcomes=effects.outcomes,
        )

    def _scrubbed(self, failure: Failure) -> Failure:
        scrub = self._sight.secrets.scrub
        return msgspec.structs.replace(
            failure, message=scrub(failure.message), detail=scrub(failure.detail)
        )
