"""The work desk of the process that holds the executions."""

import asyncio
from collections import OrderedDict

import msgspec

from noetl.decider.answers import Decided
from noetl.domain.events import ChildStarted
from noetl.domain.events.values import ResultReference
from noetl.domain.execution.rows import CommandRow
from noetl.domain.work import (
    Call,
    ChildOutcome,
    ChildRequest,
    CommandReport,
    FrameReport,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    Work,
    WorkerIdentity,
)
from noetl.kernel.errors import StateRefuses
from noetl.kernel.ids import CommandId, ExecutionId, WorkerId
from noetl.runtime import reports
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.payloads import MEDIA_TYPE, as_reference
from noetl.runtime.starting import Starter, StartRequest
from noetl.runtime.turn import Turn

REMEMBERED_MAX = 10_000
OBJECTS_INLINE_MAX = 20
"""Object changes of one frame that are events of their own; more of them are a payload."""


class CoordinatorDesk:
    def __init__(self, coordinator: Coordinator, starter: Starter) -> None:
        self._coordinator = coordinator
        self._starter = starter
        self._reported: OrderedDict[tuple[str, int], None] = OrderedDict()

    async def register(self, worker: WorkerIdentity) -> None:
        """A worker under a new boot has lost what its earlier one held."""
        self._coordinator.seats.seat(worker, self._coordinator.held.clock.now())
        for execution, running in list(self._coordinator.running.items()):
            held = [row for row in running.state.commands.values() if _is_stale(row, worker)]
            if held:
                running.void.update(row.command_id for row in held)
                self._coordinator.poke(execution)

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        coordinator = self._coordinator
        seat = coordinator.seats.seat(worker, coordinator.held.clock.now())
        seat.free = max(0, free_slots - seat.promised - len(seat.mailbox))
        coordinator.feed()
        if not seat.mailbox:
            waiting = asyncio.ensure_future(seat.has_mail.wait())
            await asyncio.wait([waiting], timeout=wait_seconds)
            waiting.cancel()
        return seat.collect()

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        lease = self._coordinator.held.terms.lease_seconds
        return await self._coordinator.submit(
            beat.execution_id, lambda turn: reports.heartbeat(turn, beat, lease)
        )

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        return await self._coordinator.submit(
            execution, lambda turn: reports.call(turn, command, claim, call)
        )

    async def report(self, report: Report) -> Reported:
        key = _key_of(report)
        if key in self._reported:
            return Reported(duplicate=True)
        if isinstance(report, CommandReport):
            await self._coordinator.submit(
                report.execution_id, lambda turn: self._command(turn, report)
            )
        else:
            objects = await self._stored_objects(report)
            await self._coordinator.submit(
                report.execution_id, lambda turn: self._frame(turn, report, objects)
            )
        self._reported[key] = None
        if len(self._reported) > REMEMBERED_MAX:
            self._reported.popitem(last=False)
        seat = self._coordinator.seats.find(report.worker_id)
        return Reported(next_work=() if seat is None else tuple(seat.collect()))

    def _command(self, turn: Turn, report: CommandReport) -> None:
        reports.command_ended(turn, report)
        self._free_slot(report.worker_id)

    def _frame(self, turn: Turn, report: FrameReport, objects: ResultReference | None) -> None:
        reports.frame_ended(turn, report, objects)
        self._free_slot(report.worker_id)

    def _free_slot(self, worker_id: WorkerId) -> None:
        """The slot can take what follows from this very report."""
        seat = self._coordinator.seats.find(worker_id)
        if seat is not None:
            seat.free += 1

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        """Named in the parent's log before it starts: asking again finds it there."""
        coordinator = self._coordinator
        parent = await coordinator.load(request.execution_id)
        asked = parent.state.children.get(request.cycle)
        entry = await coordinator.held.playbooks.find(
            parent.source.scope,
            path=request.path,
            version=request.version,
            catalog_id=request.catalog_id,
        )
        if asked is None:
            new = ExecutionId(coordinator.held.new_id())
            started = ChildStarted(
                cycle=request.cycle,
                child_execution_id=new,
                path=entry.path,
                playbook_version=entry.version,
            )
            child = await self._coordinator.submit(
                request.execution_id, lambda turn: _child(turn, request, started)
            )
        else:
            child = asked.execution_id
        start = StartRequest(
            scope=parent.source.scope,
            path=entry.path,
            version=entry.version,
            payload=request.payload,
            execution_id=child,
            parent_execution_id=request.execution_id,
        )
        return await self._starter.start(start)

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        ending = await self._coordinator.ending(child, wait_seconds)
        if ending is None:
            return None
        return ChildOutcome(
            execution_id=child,
            status=ending.status,  # type: ignore[arg-type]  # an ending is one of the three
            result=ending.result,
            step_results=ending.results,
            error=ending.error,
        )

    async def deregister(self, worker: WorkerIdentity) -> None:
        self._coordinator.seats.remove(worker.worker_id)

    async def _stored_objects(self, report: FrameReport) -> ResultReference | None:
        if len(report.emitted) <= OBJECTS_INLINE_MAX:
            return None
        running = await self._coordinator.load(report.execution_id)
        stored = await self._coordinator.held.payloads.put(
            running.source.scope, msgspec.json.encode(report.emitted), MEDIA_TYPE
        )
        return msgspec.structs.replace(as_reference(stored), row_count=len(report.emitted))


def _child(turn: Turn, request: ChildRequest, started: ChildStarted) -> ExecutionId:
    known = turn.state.children.get(request.cycle)
    if known is not None:
        return known.execution_id
    if turn.running.is_over:
        raise StateRefuses(request.execution_id, "is over; it starts nothing more")
    turn.add(Decided(event=started, command_id=request.command_id, stage_id=request.stage_id))
    return started.child_execution_id


def _is_stale(row: CommandRow, worker: WorkerIdentity) -> bool:
    return row.worker_id == worker.worker_id and row.boot_id != worker.boot_id


def _key_of(report: Report) -> tuple[str, int]:
    if isinstance(report, CommandReport):
        return report.command_id, report.claim
    return report.frame_id, report.attempt
