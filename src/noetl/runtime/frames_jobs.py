"""The rows of a frame as jobs of the interpreter."""

from typing import Any

import msgspec

from noetl.domain.playbook.loop import Loop
from noetl.domain.playbook.model import Playbook
from noetl.domain.work import FrameWork, holder_of
from noetl.kernel.errors import InvariantBroken
from noetl.pipeline.effects import ADOPTED
from noetl.pipeline.job import Job, RowResult
from noetl.runtime.frames_earlier import Earlier
from noetl.runtime.worker_commands import step_of
from noetl.templates.places import Frame, Iteration


class FrameJobs:
    """What is the same for all rows, and the job of each."""

    def __init__(
        self,
        work: FrameWork,
        playbook: Playbook,
        rows: list[Any],
        earlier: Earlier,
    ) -> None:
        self.work = work
        self.rows = rows
        self.step = step_of(playbook, work.step)
        if self.step.loop is None:
            raise InvariantBroken(
                f"a frame was handed out for step {work.step!r}, which is no loop"
            )
        self.loop: Loop = self.step.loop
        self._playbook = playbook
        self._earlier = earlier
        self._iterator = self.loop.iterator
        self._total = None if work.mode == "cursor" else work.total
        self._holder = work.holder
        # A try of a shard is like a retry by a person: what it asked for is asked for anew.
        self._visit_attempt = holder_of(work.visit_attempt, work.shard_attempt)
        self._frame = Frame(
            index=work.ordinal,
            base_index=work.first_index,
            rows=rows,
            row_count=work.row_count,
            policy=work.policy
            or {
                "max_rows": work.row_count,
                "max_seconds": work.seconds_max,
                "max_bytes": work.bytes_max,
                "lease_seconds": work.lease_seconds,
                "row_concurrency": work.row_concurrency,
                "process": self.loop.frame.process,
            },
        )

    def job(self, index: int, ctx: dict[str, Any]) -> Job:
        item = self.rows[index - self.work.first_index]
        iteration = Iteration(iterator=self._iterator, item=item, index=index, total=self._total)
        return self._job(index, ctx, iteration)

    def whole_job(self) -> Job:
        return self._job(self.work.first_index, self.work.facts.ctx, None)

    def told_once(self, index: int, result: RowResult) -> RowResult:
        """Effects of a row that was reported as failed are in that report already."""
        is_told = bool(result.adopted) and index in self._earlier.ended
        if not is_told:
            return result
        left = {key: count for key, count in result.outcomes.items() if key[0] != ADOPTED}
        return msgspec.structs.replace(result, adopted=(), outcomes=left)

    def _job(self, index: int, ctx: dict[str, Any], iteration: Iteration | None) -> Job:
        work = self.work
        return Job(
            scope=work.scope,
            playbook=self._playbook,
            step=self.step,
            visit=work.visit,
            facts=work.facts,
            ctx=ctx,
            iteration=iteration,
            frame=self._frame,
            journal=self._earlier.calls.get(index, {}),
            attempt=self._holder,
            has_predecessor=index in self._earlier.begun,
            stage_id=work.stage_id,
            visit_attempt=self._visit_attempt,
        )
