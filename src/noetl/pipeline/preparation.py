"""From a task as written to a call that a tool can run: rendered, with credentials and a key."""

from collections.abc import Mapping
from typing import Any

from noetl.domain.credential import OpenCredential
from noetl.domain.playbook.loop import ITERATOR
from noetl.pipeline.credentials import inside
from noetl.pipeline.cycle import Cycle
from noetl.pipeline.effects import AT_MOST_ONCE
from noetl.pipeline.evaluation import Source
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job
from noetl.pipeline.keeping import name_of
from noetl.pipeline.plan import WORKBOOK, TaskPlan, from_workbook, placed
from noetl.pipeline.sight import Sight
from noetl.pipeline.workshop import Workshop
from noetl.ports.tool import ToolCall

_NOTHING: Mapping[str, Any] = {}
_STARTS_ANOTHER = "playbook"
_STORES_ITSELF = "spark"


class Preparation:
    """Fields are rendered when the task's turn comes: they may name what earlier tasks gave."""

    __slots__ = ("_job", "_sight", "_workshop")

    def __init__(self, workshop: Workshop, job: Job, sight: Sight) -> None:
        self._workshop = workshop
        self._job = job
        self._sight = sight

    async def plan(self, cycle: Cycle, attempt: int) -> TaskPlan:
        """The cycle's own plan; a workbook task that is named by a template is looked up now."""
        plan = cycle.plan
        if plan.kind != WORKBOOK:
            return plan
        names = self._names(plan, attempt, _NOTHING)
        name = await self._sight.evaluation.value(plan.task.parameters.get("name"), names)
        return from_workbook(self._job.playbook, self._job.step, plan.task, name)

    async def input(self, plan: TaskPlan, attempt: int) -> Mapping[str, Any]:
        """The step's input under the task's own, which may name it."""
        given, shared = plan.input_fixed, plan.input_of_step
        if plan.has_input_of_step:
            names = self._names(plan, attempt, _NOTHING)
            shared = await self._sight.evaluation.rendered(shared, names, reveals=True, tables=True)
            own = plan.task.input
            given = {**given, **{key: shared[key] for key in shared if key not in own}}
        if plan.input_templated:
            names = self._names(plan, attempt, shared)
            evaluation = self._sight.evaluation
            rendered = await evaluation.rendered(
                plan.input_templated, names, reveals=True, tables=True
            )
            given = {**given, **rendered}
        if plan.kind == "python" and not self._job.step.is_pipeline:
            return await self._with_item(given)
        return given

    async def call(
        self, cycle: Cycle, plan: TaskPlan, attempt: int, given: Mapping[str, Any]
    ) -> ToolCall:
        names = self._names(plan, attempt, given)
        parameters = await self._parameters(plan, names)
        timeout = None
        if plan.timeout is not None:
            timeout = await self._seconds(plan, names)
        job = self._job
        if plan.kind == _STARTS_ANOTHER:
            self._refuse_secrets({**parameters, **given})
        credentials: dict[str, OpenCredential] = {}
        if plan.auth or plan.auth_inside:
            credentials = await self._credentials(plan, parameters, names)
        return ToolCall(
            kind=plan.kind,
            task=plan.name,
            step=job.step.name,
            execution_id=job.facts.run.execution_id,
            scope=job.scope,
            parameters=parameters,
            input=dict(given),
            credentials=credentials,
            context=self._sight.names.surroundings(),
            idempotency_key=cycle.key,
            command_id=job.command_id,
            stage_id=job.stage_id,
            timeout_seconds=timeout,
            attempt=attempt,
            visit_attempt=job.visit_attempt,
            result=name_of(job, plan.name, cycle.run).uri if plan.kind == _STORES_ITSELF else "",
            is_repeatable=plan.effects != AT_MOST_ONCE,
        )

    def _refuse_secrets(self, passed_on: Mapping[str, Any]) -> None:
        """A child records its workload, and does not know which part of it is secret."""
        if self._sight.secrets.scrub(passed_on) != passed_on:
            raise failed(
                "client_error",
                "a secret cannot be passed to a sub-playbook, whose log would hold it; pass the"
                " name of the credential, and let the child look it up",
            )

    async def _with_item(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """A lone program in a loop gets its row, or its rows, as an argument too."""
        row, frame, loop = self._job.iteration, self._job.frame, self._job.step.loop
        if row is not None:
            return {row.iterator: await self._sight.evaluation.whole(row.item), **given}
        if frame is not None:
            name = ITERATOR if loop is None else loop.iterator
            return {name: await self._sight.evaluation.whole(frame.rows), **given}
        return given

    async def _parameters(self, plan: TaskPlan, names: Source) -> dict[str, Any]:
        evaluation = self._sight.evaluation
        parameters = dict(plan.fixed)
        if plan.templated:
            parameters |= await evaluation.rendered(
                plan.templated, names, reveals=True, tables=True
            )
        for path, code in plan.code:
            parameters = placed(parameters, path, await evaluation.code(code, names))
        return parameters

    async def _seconds(self, plan: TaskPlan, names: Source) -> float | None:
        what = f"the timeout of {plan.name}"
        seconds = await self._sight.evaluation.number(plan.timeout, names, what)
        if seconds is not None and seconds <= 0:
            raise failed("schema", f"{what} is {seconds:g} seconds; it must be more than nothing")
        return seconds

    async def _credentials(
        self, plan: TaskPlan, parameters: Mapping[str, Any], names: Source
    ) -> dict[str, OpenCredential]:
        async def evaluate(value: Any) -> Any:
            return await self._sight.evaluation.value(value, names, reveals=True)

        opened = {}
        for wanted in (*plan.auth, *inside(parameters, plan.auth_inside)):
            found = await self._workshop.credentials.opened(self._job.scope, wanted, evaluate)
            self._sight.secrets.add(found.secrets)
            opened[wanted.alias or ""] = found.credential
        return opened

    def _names(self, plan: TaskPlan, attempt: int, given: Mapping[str, Any]) -> Source:
        names = self._sight.names
        return lambda: names.for_task(plan.name, attempt, given)
