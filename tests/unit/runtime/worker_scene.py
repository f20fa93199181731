"""A worker's surroundings that obey: a desk, a clock, pipelines that are functions."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from noetl.adapters.memory.frame_journal import MemoryFrameJournal
from noetl.domain.playbook.model import Playbook
from noetl.domain.work import (
    Call,
    CommandReport,
    CommandWork,
    Facts,
    FrameReport,
    FrameStart,
    FrameWork,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    RunFacts,
    Work,
    WorkerIdentity,
)
from noetl.kernel.ids import CommandId, ExecutionId, FrameId, StageId, StepName, WorkerId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.ports.cursor import Cursors
from noetl.runtime.frames_cursor import ClaimCalls, CursorRows
from noetl.runtime.worker import Worker, WorkerServices
from noetl.runtime.worker_commands import Pipelines
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.unit.dsl.writing import playbook, with_steps
from tests.unit.runtime.desk_parts import DeskParts
from tests.unit.runtime.worker_clock import VirtualClock, settle

SCOPE = Scope("acme", "ops")
EXECUTION = ExecutionId("77")
LEASE_SECONDS = 30.0
LATER = Instant("2026-11-16T10:00:30.000000Z")

STEP = """
- step: load
  tool: {kind: noop}
"""
LOOP = """
- step: load
  loop:
    in: "{{ workload.rows }}"
    iterator: order
    spec: {mode: parallel}
  tool: {kind: noop}
"""

Behaviour = Callable[[Job, Journal, Hold], Awaitable[RowResult]]


class Desk(DeskParts):
    """Hands out what lies on it, and remembers all that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.free_slots: list[int] = []
        self.reports: list[Report] = []
        self.beats: list[Heartbeat] = []
        self.calls: list[Call] = []
        self.starts: list[FrameStart] = []
        self.first_index = 0  # of rows that a frame has claimed
        self.chain: list[tuple[Work, ...]] = []  # what the next reports bring
        self.trouble: dict[str, Sequence[Exception]] = {}  # by method, raised one after the other
        self.answers_reports = asyncio.Event()
        self.answers_reports.set()
        self._waiting: list[Work] = []
        self._has_work = asyncio.Event()

    def put(self, *works: Work) -> None:
        self._waiting += works
        self._has_work.set()

    async def register(self, worker: WorkerIdentity) -> None:
        self._tell("register")

    async def deregister(self, worker: WorkerIdentity) -> None:
        self._tell("deregister")

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        self.free_slots.append(free_slots)
        self._tell("claim")
        while not self._waiting:
            self._has_work.clear()
            await self._has_work.wait()
        given, self._waiting = self._waiting[:free_slots], self._waiting[free_slots:]
        return given

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        self._tell("heartbeat")
        self.beats.append(beat)
        return self.answer

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        self._tell("record_call")
        self.calls.append(call)
        return self.answer

    async def frame_started(self, start: FrameStart) -> LeaseAnswer:
        self._tell("frame_started")
        self.starts.append(start)
        return msgspec.structs.replace(self.answer, first_index=self.first_index)

    async def report(self, report: Report) -> Reported:
        self._tell("report")
        self.reports.append(report)
        await self.answers_reports.wait()
        return Reported(next_work=self.chain.pop(0) if self.chain else ())

    def _tell(self, method: str) -> None:
        self.said.append(method)
        waiting = self.trouble.get(method)
        if waiting:
            self.trouble[method] = waiting[1:]
            raise waiting[0]


class Behaving:
    """Pipelines that are a function of their job."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.jobs: list[Job] = []
        self._behaviour = behaviour

    async def run(self, job: Job, journal: Journal, hold: Hold) -> RowResult:
        self.jobs.append(job)
        return await self._behaviour(job, journal, hold)


class Gate:
    """A behaviour that waits to be let through; knows who is inside."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.inside_most = 0
        self._open = asyncio.Semaphore(0)

    async def __call__(self, job: Job, journal: Journal, hold: Hold) -> RowResult:
        name = name_of(job)
        self.inside.append(name)
        self.inside_most = max(self.inside_most, len(self.inside))
        try:
            await self._open.acquire()
        finally:
            self.inside.remove(name)
        return RowResult(status="ok", value=name)

    async def let_through(self, count: int = 1) -> None:
        for _ in range(count):
            self._open.release()
        await settle()


def name_of(job: Job) -> str:
    return str(job.command_id if job.iteration is None else job.iteration.item)


class OnePlaybook:
    def __init__(self, steps: str) -> None:
        self.playbook = playbook(with_steps(steps))
        self.trouble: list[Exception] = []

    async def load(self, scope: Scope, digest: str) -> Playbook:
        if self.trouble:
            raise self.trouble.pop(0)
        return self.playbook


class Scene:
    """A worker at its desk."""

    def __init__(
        self,
        pipelines: Pipelines,
        *,
        slots: int = 2,
        steps: str = STEP,
        clock: VirtualClock | None = None,
        journal: MemoryFrameJournal | None = None,
        beat_seconds_max: float = math.inf,
        claims: tuple[Cursors, ClaimCalls] | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.desk = Desk()
        self.payloads = MemoryPayloadStore()
        self.results = memory_results(self.payloads)
        self.journal = journal or MemoryFrameJournal()
        self.playbooks = OnePlaybook(steps)
        identity = WorkerIdentity(worker_id=WorkerId("w1"), boot_id="b1", slots=slots)
        services = WorkerServices(
            desk=self.desk,
            pipelines=pipelines,
            playbooks=self.playbooks,
            results=self.results,
            journal=self.journal,
            clock=self.clock,
            beat_seconds_max=beat_seconds_max,
            cursors=None if claims is None else self._cursors(*claims),
        )
        self.worker = Worker(identity, services)

    def _cursors(self, drivers: Cursors, calls: ClaimCalls) -> CursorRows:
        given: dict[str, Any] = {"desk": self.desk, "results": self.results, "clock": self.clock}
        return CursorRows(drivers=drivers, calls=calls, **given)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["asyncio.Task[None]"]:
        running = asyncio.create_task(self.worker.run())
        try:
            await settle()
            yield running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def do(self, *works: Work) -> None:
        self.desk.put(*works)
        await settle()


def facts(**ctx: Any) -> Facts:
    return Facts(run=RunFacts(execution_id=EXECUTION), ctx=ctx)


def command(name: str = "77/load/1/0/1", **fields: Any) -> CommandWork:
    given: dict[str, Any] = {"claim": 1, "facts": facts(), "lease_seconds": LEASE_SECONDS, **fields}
    return CommandWork(
        scope=SCOPE,
        execution_id=EXECUTION,
        playbook_digest="d1",
        step=StepName("load"),
        visit=1,
        command_id=CommandId(name),
        lease_until=LATER,
        **given,
    )


def frame(rows: list[Any] | None, **fields: Any) -> FrameWork:
    given: dict[str, Any] = {
        "attempt": 1,
        "mode": "parallel",
        "first_index": 0,
        "row_count": len(rows or ()),
        "total": 1_000,
        "row_concurrency": 1,
        "facts": facts(),
        "lease_seconds": LEASE_SECONDS,
        "ordinal": 3,
        **fields,
    }
    return FrameWork(
        scope=SCOPE,
        execution_id=EXECUTION,
        playbook_digest="d1",
        step=StepName("load"),
        visit=1,
        stage_id=StageId("s1"),
        frame_id=FrameId("f1"),
        lease_until=LATER,
        rows=rows,
        **given,
    )


def reported_commands(desk: Desk) -> list[str]:
    return [each.command_id for each in desk.reports if isinstance(each, CommandReport)]


def only_command(desk: Desk) -> CommandReport:
    (report,) = desk.reports
    assert isinstance(report, CommandReport)
    return report


def only_frame(desk: Desk) -> FrameReport:
    (report,) = desk.reports
    assert isinstance(report, FrameReport)
    return report
