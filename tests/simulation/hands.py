"""A worker that forgets, repeats itself, stalls and restarts; what it was promised it remembers."""

from dataclasses import dataclass, field
from random import Random

import msgspec

from noetl.domain.events.values import Failure
from noetl.domain.work import Call, CommandWork, FrameWork, Report, RowOutcome, Work, WorkerIdentity
from noetl.kernel.errors import ClaimLost, NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.ports.work_desk import WorkDesk
from noetl.templates.recorded import inline_result
from noetl.testing.desk_words import beat, child_of, claim_of, ended, failed, name_of, worker


@dataclass
class Acknowledged:
    """What a desk has said is safe."""

    reports: set[tuple[str, int]] = field(default_factory=set)
    calls: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Hand:
    name: str
    chance: Random
    acknowledged: Acknowledged
    slots: int = 4
    boot: int = 1
    forgetful: float = 0.1  # how often an answer gets lost on its way
    held: dict[tuple[str, int], Work] = field(default_factory=dict)
    trouble: list[NoETLError] = field(default_factory=list)

    @property
    def identity(self) -> WorkerIdentity:
        return worker(self.name, boot=str(self.boot), slots=self.slots)

    async def claim(self, desk: WorkDesk) -> None:
        free = max(0, self.slots - len(self.held))
        self.take(await desk.claim(self.identity, free, 0))

    def take(self, works: list[Work]) -> None:
        if self.chance.random() < self.forgetful:
            return  # nobody works on them until their leases are over
        for work in works:
            self.held[name_of(work), claim_of(work)] = work

    async def restart(self, desk: WorkDesk) -> None:
        self.boot += 1
        self.held.clear()
        await desk.register(self.identity)

    async def beat(self, desk: WorkDesk) -> None:
        for key, work in list(self.held.items()):
            try:
                await desk.heartbeat(beat(work, self.identity))
            except ClaimLost:
                self.held.pop(key, None)

    async def work(self, desk: WorkDesk) -> None:
        """Bring one piece to its end, or a bit further."""
        if not self.held:
            return
        key, work = self.chance.choice(list(self.held.items()))
        try:
            await self._work(desk, work)
        except ClaimLost:
            self.held.pop(key, None)

    async def _work(self, desk: WorkDesk, work: Work) -> None:
        if work.step == "child" and not await self._has_child_ended(desk, work):
            return
        if isinstance(work, CommandWork) and self.chance.random() < 0.3:
            await self._record(desk, work)
        report = self._report(work)
        answer = await desk.report(report)
        if not answer.duplicate:
            self.acknowledged.reports.add((name_of(work), claim_of(work)))
        if self.chance.random() < self.forgetful:
            return  # as if the answer had not come: it reports again
        self.held.pop((name_of(work), claim_of(work)), None)
        self.take(list(answer.next_work))

    async def _record(self, desk: WorkDesk, work: CommandWork) -> None:
        task = f"task_{self.chance.randint(1, 2)}"
        call = Call(task=task, result=inline_result(1), effect="fired")
        await desk.record_call(work.execution_id, work.command_id, work.claim, call)
        self.acknowledged.calls.add((work.command_id, task))

    async def _has_child_ended(self, desk: WorkDesk, work: Work) -> bool:
        child = await desk.start_child(child_of(work, "simulation/child"))
        return await desk.await_child(ExecutionId(child), wait_seconds=0) is not None

    def _report(self, work: Work) -> Report:
        if isinstance(work, CommandWork):
            if work.step == "shaky" and work.visit % 2 == 1:
                return failed(work, self.identity, Failure(kind="unknown", message="shaky"))
            return ended(work, self.identity, work.visit)
        return self._frame_report(work)

    def _frame_report(self, work: FrameWork) -> Report:
        """All of its rows, its first rows only, or a frame that could not be processed."""
        if self.chance.random() < 0.1:
            error = Failure(kind="connection", message="not now", retryable=True)
            return failed(work, self.identity, error)
        done = self.chance.randint(1, work.row_count)
        rows = range(work.first_index, work.first_index + done)
        return msgspec.structs.replace(
            ended(work, self.identity),
            row_count=done,
            outcomes=tuple(RowOutcome(index=row, status="ok", value=row) for row in rows),
        )
