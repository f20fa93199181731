"""The work desk of the process that holds the executions."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress

import msgspec

from noetl.decider.answers import Decided
from noetl.domain.chunk import ChunkTold
from noetl.domain.events import ChildStarted
from noetl.domain.events.values import ResultReference
from noetl.domain.execution.rows import TERMINAL
from noetl.domain.work import (
    Call,
    ChildOutcome,
    ChildRequest,
    CommandReport,
    FrameReport,
    FrameStart,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    Work,
    WorkerIdentity,
    heartbeat_of,
)
from noetl.kernel.errors import ClaimLost, NoETLError, StageOver, StateRefuses
from noetl.kernel.ids import CommandId, ExecutionId, WorkerId
from noetl.kernel.instant import plus
from noetl.pipeline.payloads import MEDIA_TYPE, as_reference
from noetl.runtime import reports
from noetl.runtime.control import cancel_tree
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.desk_answers import ReportAnswers, ReportKey
from noetl.runtime.log_lines import about
from noetl.runtime.recovery import void_leases
from noetl.runtime.report_names import count_called, count_reported
from noetl.runtime.reports_chunks import chunk_told
from noetl.runtime.reports_claims import frame_started
from noetl.runtime.reports_frames import frame_ended
from noetl.runtime.starting import Starter, StartRequest
from noetl.runtime.turn import Turn

_LOG = logging.getLogger(__name__)
OBJECTS_INLINE_MAX = 20
"""Object changes of one frame that are events of their own; more of them are a payload."""


class CoordinatorDesk:
    def __init__(self, coordinator: Coordinator, starter: Starter) -> None:
        self._coordinator = coordinator
        self._starter = starter
        self._answers = ReportAnswers()

    async def register(self, worker: WorkerIdentity) -> None:
        """A worker under a new boot has lost what its earlier one held."""
        self._coordinator.seats.seat(worker, self._coordinator.held.clock.now())
        names = about(worker=worker.worker_id, slots=worker.slots)
        _LOG.info("worker registered", extra=names)
        await self._take_back(worker)

    async def _take_back(self, worker: WorkerIdentity, *, handed_back: bool = False) -> None:
        """What the worker holds by the log, and its newest boot does not know of."""
        name = worker.worker_id
        for execution, running in list(self._coordinator.running.items()):
            state = running.state
            holders = {row.worker_id for row in state.commands.values()}
            holders |= {row.worker_id for row in state.frames.values()}
            if name in holders:
                gone = frozenset({name})
                await void_leases(self._coordinator, execution, gone, handed_back=handed_back)

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        coordinator = self._coordinator
        seat = coordinator.seats.seat(worker, coordinator.held.clock.now())
        seat.free = max(0, free_slots - seat.promised - len(seat.mailbox))
        with seat.listening():
            coordinator.feed()
            if not seat.mailbox:
                await self._check_served(worker)
                waiting = asyncio.ensure_future(seat.has_mail.wait())
                await asyncio.wait([waiting], timeout=wait_seconds)
                waiting.cancel()
            if not seat.mailbox:
                await self._check_served(worker)
            return await self._fresh(seat.collect(), worker.worker_id)

    async def _check_served(self, worker: WorkerIdentity) -> None:
        """A slot whose stage hands out nothing any more may go. Raises StageOver."""
        if worker.serves is None:
            return
        running = await self._coordinator.load(worker.serves.execution_id)
        state = running.state
        if state.execution.status != "RUNNING" or worker.serves.stage_id not in state.stages:
            raise StageOver(worker.serves.stage_id)

    async def _fresh(self, works: Iterable[Work], worker_id: WorkerId) -> list[Work]:
        """A worker counts on a whole lease from the question that brought it the work: what lay
        here for a while is renewed first, and what was taken back meanwhile is left out."""
        fresh: list[Work] = []
        for work in works:
            counted_on = plus(self._coordinator.held.clock.now(), seconds=_believed(work))
            if work.lease_until >= counted_on:
                fresh.append(work)
                continue
            try:
                answer = await self.heartbeat(heartbeat_of(work, worker_id))
            except NoETLError as error:  # it goes out again when its lease is over
                names = about(execution_id=work.execution_id, step=work.step, worker=worker_id)
                _LOG.info("work that lay ready was not kept: %s", error.code, extra=names)
                continue
            until = answer.lease_until or work.lease_until
            fresh.append(msgspec.structs.replace(work, lease_until=until))
        return fresh

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        self._coordinator.seats.hear(beat.worker_id, self._coordinator.held.clock.now())
        lease = self._coordinator.held.terms.lease_seconds
        with self._fencing(beat):
            answer = await self._coordinator.submit(
                beat.execution_id, lambda turn: reports.heartbeat(turn, beat, lease)
            )
        is_leaving = self._coordinator.seats.is_leaving(beat.worker_id)
        return msgspec.structs.replace(answer, next_action="wait") if is_leaving else answer

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        answer = await self._coordinator.submit(
            execution, lambda turn: reports.call(turn, command, claim, call)
        )
        count_called(self._coordinator.held.results.counts, call)
        return answer

    async def record_chunk(self, told: ChunkTold) -> LeaseAnswer:
        return await self._coordinator.submit(
            told.execution_id, lambda turn: chunk_told(turn, told)
        )

    async def frame_started(self, start: FrameStart) -> LeaseAnswer:
        with self._fencing(start):
            return await self._coordinator.submit(
                start.execution_id, lambda turn: frame_started(turn, start)
            )

    async def report(self, report: Report) -> Reported:
        key = _key_of(report)
        first = await self._answers.known(key)
        if first is None:
            return await self._answers.made(key, lambda: self._answered(report))
        known = await self._fresh(first.next_work, report.worker_id)
        return Reported(duplicate=True, next_work=tuple(known))

    async def _answered(self, report: Report) -> Reported:
        seat = self._coordinator.seats.find(report.worker_id)
        with (
            self._fencing(report),
            nullcontext() if seat is None else seat.listening(),
        ):
            await self._record(report)
        count_reported(self._coordinator.held.results.counts, report)
        brought = [] if seat is None else await self._fresh(seat.collect(), report.worker_id)
        return Reported(next_work=tuple(brought))

    @contextmanager
    def _fencing(self, said: Heartbeat | FrameStart | Report) -> Iterator[None]:
        """A worker that works on what it does not hold any more is worth a line."""
        try:
            yield
        except ClaimLost as lost:
            names = about(execution_id=said.execution_id, worker=said.worker_id)
            if self._is_late_only(said):
                _LOG.debug("worker came late: %s", lost, extra=names)
            else:
                _LOG.warning("worker fenced off: %s", lost, extra=names)
            self._coordinator.measures.tell("claim_refused", 1)
            raise

    def _is_late_only(self, said: Heartbeat | FrameStart | Report) -> bool:
        """It met an end on its way, as a heartbeat meets its own report; nobody else has it."""
        running = self._coordinator.running.get(said.execution_id)
        if running is None or running.state.execution.status in TERMINAL:
            return True
        held = running.state.commands.keys() | running.state.frames.keys()
        return isinstance(said, Heartbeat) and not {said.command_id, said.frame_id} & held

    async def _record(self, report: Report) -> None:
        if isinstance(report, CommandReport):
            await self._coordinator.submit(
                report.execution_id, lambda turn: self._command(turn, report)
            )
        else:
            objects = await self._stored_objects(report)
            await self._coordinator.submit(
                report.execution_id, lambda turn: self._frame(turn, report, objects)
            )

    def _command(self, turn: Turn, report: CommandReport) -> None:
        reports.command_ended(turn, report)
        self._free_slot(turn, report.worker_id)  # for what follows from this very report

    def _frame(self, turn: Turn, report: FrameReport, objects: ResultReference | None) -> None:
        frame_ended(turn, report, objects)
        self._free_slot(turn, report.worker_id)

    def _free_slot(self, turn: Turn, worker_id: WorkerId) -> None:
        seat = self._coordinator.seats.find(worker_id)
        if seat is not None and not seat.asks_by_itself:
            seat.free_slot()
            turn.if_lost(seat.keep_slot)

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        """Named in the parent's log before it starts: asking again finds it there."""
        coordinator = self._coordinator
        parent = await coordinator.load(request.execution_id)
        scope = parent.source.scope
        entry = await coordinator.held.playbooks.find(
            scope, path=request.path, version=request.version, catalog_id=request.catalog_id
        )
        started = ChildStarted(
            cycle=request.cycle,
            child_execution_id=ExecutionId(coordinator.held.new_id()),
            path=entry.path,
            playbook_version=entry.version,
        )
        child = await coordinator.submit(
            request.execution_id, lambda turn: _child(turn, request, started)
        )
        start = StartRequest(
            scope=scope,
            path=entry.path,
            version=entry.version,
            payload=request.payload,
            execution_id=child,
            parent_execution_id=request.execution_id,
            parent_stage_id=request.stage_id or parent.state.run.parent_stage_id,
        )
        await self._starter.start(start)
        await self._follow_the_parent(request.execution_id, child)
        return child

    async def _follow_the_parent(self, parent: ExecutionId, child: ExecutionId) -> None:
        """A parent that is cancelled while its child is starting does not see it: we do."""
        if (await self._coordinator.load(parent)).state.execution.status == "CANCELLED":
            with suppress(StateRefuses):  # it has ended
                await cancel_tree(self._coordinator, child, "its parent was cancelled")

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
        """What it has not ended goes to others, and does not count as lost."""
        if self._coordinator.seats.remove(worker):
            _LOG.info("worker signed off", extra=about(worker=worker.worker_id))
            await self._take_back(worker, handed_back=True)

    async def _stored_objects(self, report: FrameReport) -> ResultReference | None:
        if len(report.emitted) <= OBJECTS_INLINE_MAX:
            return None
        running = await self._coordinator.load(report.execution_id)
        stored = await self._coordinator.held.results.payloads.put(
            running.source.scope, msgspec.json.encode(report.emitted), MEDIA_TYPE
        )
        return msgspec.structs.replace(as_reference(stored), row_count=len(report.emitted))


def _child(turn: Turn, request: ChildRequest, started: ChildStarted) -> ExecutionId:
    known = turn.state.children.get(request.cycle)
    if known is not None:
        return known.execution_id
    state = turn.state
    if request.command_id not in state.commands and request.stage_id not in state.stages:
        raise ClaimLost(request.cycle, "belongs to work that is over")
    turn.add(Decided(event=started, command_id=request.command_id, stage_id=request.stage_id))
    return started.child_execution_id


def _believed(work: Work) -> float:
    return work.lease_seconds * reports.RENEWED_BELOW


def _key_of(report: Report) -> ReportKey:
    if isinstance(report, CommandReport):
        return report.command_id, report.claim
    return report.frame_id, report.attempt
