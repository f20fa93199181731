"""A command from its claim to its report."""

from dataclasses import dataclass
from typing import Protocol

from noetl.domain.events.values import Result
from noetl.domain.playbook.model import Playbook, Step
from noetl.domain.work import Call, CommandReport, CommandWork
from noetl.kernel.errors import ClaimLost, InvariantBroken
from noetl.kernel.ids import StepName, WorkerId
from noetl.pipeline.chunks import Passing
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.pipeline.keeping import keeping_of_step
from noetl.ports.clock import Clock
from noetl.ports.work_desk import WorkDesk
from noetl.results.store import ResultStore
from noetl.runtime.worker_chunks import ChunkTeller, answers_to_chunks
from noetl.runtime.worker_patience import insisted
from noetl.templates.layered import PipelineResult


class Pipelines(Protocol):
    """The interpreter, as its callers see it."""

    async def run(self, job: Job, journal: Journal, hold: Hold) -> RowResult: ...


@dataclass(frozen=True, slots=True)
class Commands:
    pipelines: Pipelines
    results: ResultStore
    desk: WorkDesk
    clock: Clock

    async def run(
        self, work: CommandWork, playbook: Playbook, hold: Hold, worker: WorkerId
    ) -> CommandReport:
        """Raises ClaimLost."""
        began = self.clock.monotonic()
        step = step_of(playbook, work.step)
        job = Job(
            scope=work.scope,
            playbook=playbook,
            step=step,
            visit=work.visit,
            facts=work.facts,
            ctx=work.facts.ctx,
            journal={(call.task, call.run): call for call in work.journal},
            attempt=work.holder,
            has_predecessor=work.claim > 1,
            command_id=work.command_id,
            passing=self._passing(work, step, hold),
        )
        ended = await self.pipelines.run(job, _CommandJournal(self, work, hold), hold)
        result = await insisted(lambda: self._result(job, ended), hold.check, self.clock)
        return CommandReport(
            execution_id=work.execution_id,
            command_id=work.command_id,
            claim=work.claim,
            worker_id=worker,
            calls=ended.calls,
            result=result,
            error=ended.error,
            writes=dict(ended.writes),
            emitted=ended.emitted,
            duration_ms=round(1000 * (self.clock.monotonic() - began)),
        )

    def _passing(self, work: CommandWork, step: Step, hold: Hold) -> Passing | None:
        if not answers_to_chunks(step):
            return None
        teller = ChunkTeller(work, step, self.desk, self.results)
        return lambda made: teller.pass_on(made, hold, self.clock)

    async def _result(self, job: Job, ended: RowResult) -> Result | None:
        """Of a failed pipeline the tasks that did succeed; of a tool what it said in failing."""
        if ended.recorded is not None:
            return ended.recorded
        keeping = keeping_of_step(job.step, ended.parent)
        if ended.status != "failed":
            return await keeping.record(self.results, job.result_name(), ended.value)
        said = ended.value.tasks if isinstance(ended.value, PipelineResult) else ended.value
        if said is None or said == {}:
            return None
        return await keeping.record(self.results, job.result_name(), ended.value, "error")


class _CommandJournal:
    """Calls become events at the desk."""

    def __init__(self, commands: Commands, work: CommandWork, hold: Hold) -> None:
        self._commands = commands
        self._work = work
        self._hold = hold

    async def begin(self, *, alone: bool) -> None:
        """That a command may have begun stands in the log: it was claimed."""

    def tried(self, call: Call) -> None:
        """Tries of a command are counted by its holder alone: each would be an event."""

    async def record(self, call: Call) -> None:
        work, desk = self._work, self._commands.desk
        answer = await insisted(
            lambda: desk.record_call(work.execution_id, work.command_id, work.claim, call),
            self._hold.check,
            self._commands.clock,
        )
        if answer.next_action == "stop":
            raise ClaimLost(work.command_id, "was stopped")


def step_of(playbook: Playbook, name: StepName) -> Step:
    step = playbook.steps.get(name)
    if step is None:
        raise InvariantBroken(f"work was handed out for a step {name!r} that the playbook has not")
    return step
