"""Stages that an engine works on get slots while they are open, and get them back when lost.

Nothing here decides what a stage is worth: frames, leases and ends are the coordinator's. Rows that
are for an engine alone wait for its slots; when these cannot be had, local workers go on.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from noetl.decider.answers import Decided
from noetl.decider.engines import will_want_spark
from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    FrameCommitted,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    StageClosed,
    StageEngine,
    StageOpened,
)
from noetl.domain.execution.rows import StageRow
from noetl.domain.execution.state import ExecutionState, LoopWork
from noetl.domain.log import SealedEvent
from noetl.kernel.errors import NoETLError, StageOver
from noetl.kernel.ids import ExecutionId, LoopId, StageId
from noetl.kernel.scope import Scope
from noetl.ports.slot_source import EngineJob, SlotSource, StageOrder
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.log_lines import about
from noetl.runtime.recovery import void_leases
from noetl.runtime.reports import lease_of
from noetl.runtime.slot_orders import frames_per_slot, slots_for
from noetl.runtime.slot_turns import SlotTurns
from noetl.runtime.turn import Turn

ENGINE = "spark"
LOST_MAX = 5
"""How often a stage's slots may be lost, without a frame from them, before local workers have it
for good."""

PAUSE_SECONDS = 1.0
CANCEL_GRACE_SECONDS = 2.0
CLOSE_GRACE_SECONDS = 10.0
"""Slots leave by themselves. Those that have not by then work on what nobody wants."""

_LOG = logging.getLogger(__name__)


class _Grace(NamedTuple):
    """How long a job may go on, and how much longer when none of its slots is at the desk: it
    ends by itself then, and to stop it costs its engine more."""

    seconds: float
    seconds_unserved: float = CLOSE_GRACE_SECONDS


class _Found(NamedTuple):
    """A stage that wants slots."""

    scope: Scope
    stage: StageRow
    work: LoopWork


class _Loss(NamedTuple):
    """Why there are no slots any more."""

    error: NoETLError
    is_job: bool  # there had been a job, or at least the session for one


class StageSlots:
    def __init__(self, coordinator: Coordinator, source: SlotSource, slots: int) -> None:
        self._coordinator = coordinator
        self._source = source
        self._slots = slots
        self._serving: dict[StageId, asyncio.Task[bool]] = {}
        self._stages_of: dict[ExecutionId, set[StageId]] = {}
        self._jobs: dict[StageId, EngineJob] = {}
        self._is_moving: set[StageId] = set()  # slots have brought a frame since the last job
        self._turns = SlotTurns(coordinator.seats, coordinator.held.clock)
        self._asides: set[asyncio.Task[None]] = set()
        coordinator.listeners.append(self._hear)

    async def resume(self, executions: Sequence[ExecutionId]) -> None:
        """After a start: stages that were being worked on get new slots."""
        for execution in executions:
            with suppress(NoETLError):  # one that cannot be read is somebody else's trouble
                await self._take_up(execution)

    async def close(self) -> None:
        tasks = [*self._serving.values(), *self._asides]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._source.close()

    def _hear(self, execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        for sealed in events:
            if sealed.envelope.stage_id is not None:
                self._hear_of_stage(execution, sealed.envelope.stage_id, sealed.event)
                continue
            match sealed.event:
                case PlaybookInitialized():
                    self._aside(self._warm_up(execution))
                case ExecutionResumed():
                    self._aside(self._take_up(execution))
                case ExecutionPaused():  # running frames commit, then their slots leave
                    self._dismiss_all(execution, None)
                case ExecutionCancelled():  # also slots that are yet to come are to stay away
                    self._dismiss_all(execution, _Grace(CANCEL_GRACE_SECONDS, 0.0))
                case PlaybookCompleted() | PlaybookFailed():
                    self._dismiss_all(execution, _Grace(CANCEL_GRACE_SECONDS))

    def _hear_of_stage(self, execution: ExecutionId, stage_id: StageId, event: object) -> None:
        match event:
            case StageOpened() if event.frame_policy.get("engine") == ENGINE:
                self._begin(execution, stage_id)
            case FrameCommitted() if stage_id in self._serving:
                seat = self._coordinator.seats.find(event.worker_id)
                if seat is not None and seat.worker.serves is not None:
                    self._is_moving.add(stage_id)
            case StageClosed():
                self._dismiss(stage_id, _Grace(CLOSE_GRACE_SECONDS))

    def _dismiss_all(self, execution: ExecutionId, grace: _Grace | None) -> None:
        for stage_id in self._stages_of.get(execution, ()):
            self._dismiss(stage_id, grace)

    def _dismiss(self, stage_id: StageId, grace: _Grace | None) -> None:
        """Slots leave by themselves when they hear that nothing is left to do."""
        self._coordinator.seats.dismiss(stage_id)
        if grace is not None and stage_id in self._serving:
            self._aside(self._withdraw_late(stage_id, grace))

    async def _withdraw_late(self, stage_id: StageId, grace: _Grace) -> None:
        job, clock = self._jobs.get(stage_id), self._coordinator.held.clock
        await clock.sleep(grace.seconds)
        if not self._coordinator.seats.is_served(stage_id):
            await clock.sleep(grace.seconds_unserved)
        if job is not None and self._jobs.get(stage_id) is job:
            with suppress(NoETLError):  # its driver is gone, and the job with it
                await self._source.withdraw(job)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        task.add_done_callback(_tell)

    async def _warm_up(self, execution: ExecutionId) -> None:
        """A session takes seconds to start: best while the first steps run."""
        running = await self._coordinator.load(execution)
        if will_want_spark(running.plan.playbook, self._coordinator.held.engine):
            await self._source.warm_up()

    async def _take_up(self, execution: ExecutionId) -> None:
        running = await self._coordinator.load(execution)
        for stage in list(running.state.stages.values()):
            if stage.frame_policy.get("engine") == ENGINE and stage.status == "OPEN":
                self._begin(execution, stage.stage_id)

    def _begin(self, execution: ExecutionId, stage_id: StageId) -> None:
        if stage_id in self._serving:
            return
        self._coordinator.seats.left_to_all.discard(stage_id)
        task = asyncio.create_task(self._serve(execution, stage_id))
        self._serving[stage_id] = task
        self._stages_of.setdefault(execution, set()).add(stage_id)
        task.add_done_callback(lambda task: self._served(execution, stage_id, task))
        task.add_done_callback(_tell)

    def _served(
        self, execution: ExecutionId, stage_id: StageId, task: "asyncio.Task[bool]"
    ) -> None:
        """Nobody provides for the stage now, so nobody waits for slots, unless it is paused: then
        they come with its resumption."""
        self._serving.pop(stage_id, None)
        self._jobs.pop(stage_id, None)
        self._is_moving.discard(stage_id)
        self._turns.end(stage_id)
        stages = self._stages_of.get(execution, set())
        stages.discard(stage_id)
        if not stages:
            self._stages_of.pop(execution, None)
        running = self._coordinator.running.get(execution)
        if running is None or not _hands_out(running.state, stage_id):
            self._coordinator.seats.left_to_all.discard(stage_id)
        elif not task.cancelled() and task.exception() is None and task.result():
            self._begin(execution, stage_id)  # it was resumed after the last look
        else:
            self._leave_to_all(stage_id)

    async def _serve(self, execution: ExecutionId, stage_id: StageId) -> bool:
        """Until the stage hands out nothing any more. False: its slots are waited for no more."""
        lost = 0
        while lost < LOST_MAX:
            found = await self._find(execution, stage_id)
            if found is None:
                return True
            await self._withdraw_earlier(found.work)
            loss = await self._provide(execution, found)
            released = self._coordinator.seats.release(stage_id)
            if loss is None:
                lost = 0
                continue
            if await self._find(execution, stage_id) is None:
                return True  # nobody wants them any more
            lost = 1 if stage_id in self._is_moving else lost + 1
            told = about(execution_id=execution, stage_id=stage_id, lost=lost)
            if loss.is_job:
                _LOG.warning("slots of a stage were lost: %s", loss.error, extra=told)
            else:
                message = "local workers go on with the stage: its engine cannot be had: %s"
                _LOG.warning(message, loss.error, extra=told)
                self._leave_to_all(stage_id)
            # Unless its rows are for the engine alone, the stage is everybody's until its next
            # slots come, which void what these ones held.
            if self._source.leaves_none(loss.error):
                with suppress(NoETLError):  # leases run out by themselves
                    await void_leases(self._coordinator, execution, released)
            self._coordinator.feed()
            await self._coordinator.held.clock.sleep(PAUSE_SECONDS * lost)
        _LOG.warning("local workers go on with the stage", extra=about(stage_id=stage_id))
        return False

    def _leave_to_all(self, stage_id: StageId) -> None:
        self._coordinator.seats.left_to_all.add(stage_id)
        self._coordinator.feed()

    async def _provide(self, execution: ExecutionId, found: _Found) -> _Loss | None:
        """Until the slots have left; returns why when they were lost."""
        stage_id = found.stage.stage_id
        order = StageOrder(
            scope=found.scope,
            execution_id=execution,
            stage_id=stage_id,
            step=found.stage.step,
            slots=slots_for(found.work, self._slots),
            lease_seconds=lease_of(
                found.work.policy, self._coordinator.held.terms.lease_seconds, None
            ),
            frames_per_slot=frames_per_slot(found.work, self._slots),
            generation=found.work.jobs,
        )
        self._is_moving.discard(stage_id)
        self._turns.begin(stage_id)
        try:
            await self._source.provide(order, lambda job: self._announce(execution, stage_id, job))
        except NoETLError as error:
            return _Loss(error, is_job=stage_id in self._jobs)
        finally:
            self._jobs.pop(stage_id, None)
        return None

    async def _find(self, execution: ExecutionId, stage_id: StageId) -> _Found | None:
        """None: the stage hands out nothing any more."""
        running = await self._coordinator.load(execution)
        if not _hands_out(running.state, stage_id):
            return None
        stage = running.state.stages[stage_id]
        work = running.state.loop_work[stage.loop_id or LoopId("")]
        return _Found(running.source.scope, stage, work)

    async def _withdraw_earlier(self, work: LoopWork) -> None:
        """A job of a coordinator that died may still run, where sessions outlive their drivers."""
        if work.job is not None:
            with suppress(NoETLError):
                await self._source.withdraw(msgspec.convert(work.job, EngineJob))

    async def _announce(self, execution: ExecutionId, stage_id: StageId, job: EngineJob) -> None:
        """Raises StageOver: an engine takes seconds to start, and the stage may be over by then."""
        event = msgspec.convert(job, StageEngine, from_attributes=True)
        self._jobs[stage_id] = job

        def wish(turn: Turn) -> None:
            if not _hands_out(turn.state, stage_id):
                raise StageOver(stage_id)
            turn.add(Decided(event=event, stage_id=stage_id))

        await self._coordinator.submit(execution, wish)
        self._aside(self._turns.come(stage_id, lambda: self._jobs.get(stage_id) is job))


def _hands_out(state: ExecutionState, stage_id: StageId) -> bool:
    return stage_id in state.stages and state.execution.status == "RUNNING"


def _tell(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("the slots of a stage failed", exc_info=error)
