"""What a decision may look at: the plan, the state, and what the coordinator fetched for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from noetl.decider.plan import Plan
from noetl.domain.events.values import Failure, Result, ResultReference
from noetl.domain.execution.state import ExecutionState
from noetl.domain.work import Facts, RunFacts
from noetl.kernel.ids import LoopId, StepName
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.layered import Outcome
from noetl.templates.places import Known, for_step, run_of
from noetl.templates.recorded import Fetched, RecordedResults, error_names, value_of

StageEngines = Literal["auto", "spark", "local", "none"]
"""What stages may run on: as the settings have it, or `none` where there is no Spark to be had."""


VISITS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class StoredCollection:
    """A loop's items that were too many for an event."""

    reference: ResultReference
    size: int


@dataclass(frozen=True, slots=True)
class Closing:
    """A finished loop's result, put together from the outputs of its frames."""

    result: Result
    output_ref: ResultReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    plan: Plan
    state: ExecutionState
    processors: int = 2  # what CPU-bound rows may use at once
    engine: StageEngines = "local"
    engine_slots: int = 2  # that an engine has for one stage
    attempts_max: int = 10  # holders of one command before it fails
    visits_max: int = VISITS_MAX  # of one step, before the execution is taken for an endless one
    fetched: Fetched = field(default_factory=dict)
    collections: Mapping[LoopId, StoredCollection] = field(default_factory=dict)
    closings: Mapping[LoopId, Closing] = field(default_factory=dict)

    def bindings(
        self, step: StepName, ctx: dict[str, Any] | None = None, result: Result | None = None
    ) -> Bindings:
        """Names at a step; time and chance are the same at every asking.

        `result` is what this visit came to: the step's own name means it before it is recorded.
        """
        state = self.state
        facts = facts_of(state)
        results = state.results if result is None else {**state.results, step: result}
        known = Known(
            run=run_of(facts.run, self.plan.playbook.exposed),
            workload=facts.workload,
            ctx=state.ctx if ctx is None else ctx,
            steps=RecordedResults(results, self.fetched, self.plan.playbook.aliases),
            before=self.plan.playbook.before.get(step),
        )
        entered = state.steps.get(step)
        visit = 1 if entered is None else entered.visit
        chance = Chance(f"{facts.run.execution_id}/{step}/{visit}")
        return for_step(known).asking(state.now, chance)

    def outcome(self, result: Result | None, error: Failure | None) -> Outcome:
        value = None if result is None else value_of(result, self.fetched)
        if error is None:
            return Outcome(result=value)
        detail = error.detail
        return Outcome(
            result=value,
            status="error",
            error=error_names(error),
            http=detail.get("http"),
            pg=detail.get("pg"),
            py=detail.get("py"),
        )


def facts_of(state: ExecutionState) -> Facts:
    """The execution as it is now. Nothing is copied: the fold replaces maps, never changes them."""
    row, run = state.execution, state.run
    return Facts(
        run=RunFacts(
            execution_id=row.execution_id,
            job_uuid=run.job_uuid,
            catalog_id=run.catalog_id,
            path=row.path or "",
            version=row.playbook_version or 1,
            parent_execution_id=row.parent_execution_id,
            payload=run.payload,
            env=run.env,
        ),
        workload=run.workload,
        ctx=state.ctx,
        results=state.results,
    )
