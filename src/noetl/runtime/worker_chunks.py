"""Chunks from a worker's hands into the log: stored if they are large, told before the next."""

from noetl.domain.chunk import Chunk, ChunkTold
from noetl.domain.events.values import Result
from noetl.domain.naming.result_name import ResultName
from noetl.domain.playbook.keeping import output_of
from noetl.domain.playbook.model import PARTIAL, Step
from noetl.domain.work import CommandWork
from noetl.kernel import canonical_json
from noetl.kernel.errors import ClaimLost
from noetl.pipeline.chunks import MadeChunk
from noetl.pipeline.job import Hold
from noetl.pipeline.keeping import inline_bytes_max
from noetl.ports.clock import Clock
from noetl.ports.work_desk import WorkDesk
from noetl.results.store import ResultStore
from noetl.runtime.worker_patience import insisted

INLINE_BYTES_MAX = 1024 * 1024
"""What the chunks of one command may have inside events: while a slow step takes its time, the
state holds them."""


def answers_to_chunks(step: Step) -> bool:
    return any(arc.on == PARTIAL for arc in step.next.arcs)


class ChunkTeller:
    """For one holder of one command."""

    def __init__(self, work: CommandWork, step: Step, desk: WorkDesk, results: ResultStore) -> None:
        self._work = work
        self._step = step
        self._desk = desk
        self._results = results
        self._told: dict[tuple[str, int], int] = {}
        self._inline_bytes = 0

    async def pass_on(self, made: MadeChunk, hold: Hold, clock: Clock) -> None:
        """A task that is tried again makes its chunks again: what was told of stays told."""
        if made.index < self._told.get((made.task, made.run), 0):
            return
        result = await insisted(lambda: self._recorded(made), hold.check, clock)
        told = ChunkTold(
            execution_id=self._work.execution_id,
            command_id=self._work.command_id,
            claim=self._work.claim,
            chunk=Chunk(
                task=made.task,
                run=made.run,
                index=made.index,
                has_more=made.has_more,
                result=result,
            ),
        )
        answer = await insisted(lambda: self._desk.record_chunk(told), hold.check, clock)
        self._told[made.task, made.run] = made.index + 1
        if result.reference is None:
            self._inline_bytes += len(canonical_json.encode(result.context))
        if answer.next_action == "stop":
            raise ClaimLost(self._work.command_id, "was stopped")

    async def _recorded(self, made: MadeChunk) -> Result:
        output = output_of(self._step, self._step.task(made.task))
        limit = inline_bytes_max(output, self._results.inline_bytes_max)
        if self._inline_bytes >= INLINE_BYTES_MAX:
            limit = 0
        name = self._name(made)
        return await self._results.record(name, made.value, inline_bytes_max=limit)

    def _name(self, made: MadeChunk) -> ResultName:
        """Beside the task's own result, which is row 0."""
        work = self._work
        return ResultName(
            tenant=work.scope.tenant_id,
            project=work.scope.organization_id,
            execution_id=work.execution_id,
            step=work.step,
            task=made.task,
            run=made.run,
            row=made.index + 1,
            attempt=work.holder,
            visit=work.visit,
        )
