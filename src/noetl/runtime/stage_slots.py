"""Stages that an engine works on get slots while they are open, and get them back when lost.

Nothing here decides what a stage is worth: frames, leases and ends are the coordinator's. When
slots cannot be had, local workers go on with the stage.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from noetl.decider.answers import Decided
from noetl.decider.engines import will_want_spark
from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    StageClosed,
    StageEngine,
    StageOpened,
)
from noetl.domain.execution.state import LoopWork
from noetl.domain.log import SealedEvent
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId, LoopId, StageId
from noetl.ports.slot_source import EngineJob, SlotSource, StageOrder
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.log_lines import about
from noetl.runtime.turn import Turn

ENGINE = "spark"
LOST_MAX = 5
"""How often a stage's slots may be lost in a row before local workers have it for good."""

PAUSE_SECONDS = 1.0
_LOG = logging.getLogger(__name__)
_ENDINGS = (PlaybookCompleted, PlaybookFailed, ExecutionCancelled, ExecutionPaused)


class StageSlots:
    def __init__(self, coordinator: Coordinator, source: SlotSource, slots: int) -> None:
        self._coordinator = coordinator
        self._source = source
        self._slots = slots
        self._serving: dict[StageId, asyncio.Task[None]] = {}
        self._stages_of: dict[ExecutionId, set[StageId]] = {}
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
            match sealed.event:
                case StageOpened() as opened if opened.frame_policy.get("engine") == ENGINE:
                    self._begin(execution, sealed.envelope.stage_id or StageId(""))
                case StageClosed():
                    self._coordinator.seats.dismiss(sealed.envelope.stage_id or StageId(""))
                case PlaybookInitialized():
                    self._aside(self._warm_up(execution))
                case ExecutionResumed():
                    self._aside(self._take_up(execution))
                case event if isinstance(event, _ENDINGS):
                    self._dismiss_all(execution)

    def _dismiss_all(self, execution: ExecutionId) -> None:
        """Slots leave by themselves when they hear that nothing is left to do."""
        for stage_id in self._stages_of.get(execution, ()):
            self._coordinator.seats.dismiss(stage_id)

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
        task = asyncio.create_task(self._serve(execution, stage_id))
        self._serving[stage_id] = task
        self._stages_of.setdefault(execution, set()).add(stage_id)
        task.add_done_callback(lambda _: self._served(execution, stage_id))
        task.add_done_callback(_tell)

    def _served(self, execution: ExecutionId, stage_id: StageId) -> None:
        self._serving.pop(stage_id, None)
        stages = self._stages_of.get(execution, set())
        stages.discard(stage_id)
        if not stages:
            self._stages_of.pop(execution, None)

    async def _serve(self, execution: ExecutionId, stage_id: StageId) -> None:
        lost = 0
        while lost < LOST_MAX:
            running = await self._coordinator.load(execution)
            stage = running.state.stages.get(stage_id)
            if stage is None or running.state.execution.status != "RUNNING":
                return
            work = running.state.loop_work[stage.loop_id or LoopId("")]
            await self._withdraw_earlier(work)
            order = StageOrder(
                scope=running.source.scope,
                execution_id=execution,
                stage_id=stage_id,
                step=stage.step,
                slots=slots_for(work, self._slots),
                generation=work.jobs,
            )
            try:
                await self._source.provide(
                    order, lambda job: self._announce(execution, stage_id, job)
                )
                lost = 0
            except NoETLError as error:
                lost += 1
                told = about(execution_id=execution, stage_id=stage_id, lost=lost)
                _LOG.warning("slots of a stage were lost: %s", error, extra=told)
                await self._coordinator.held.clock.sleep(PAUSE_SECONDS * lost)
        _LOG.warning("local workers go on with the stage", extra=about(stage_id=stage_id))

    async def _withdraw_earlier(self, work: LoopWork) -> None:
        """A job of a coordinator that died may still run, where sessions outlive their drivers."""
        if work.job is not None:
            with suppress(NoETLError):
                await self._source.withdraw(msgspec.convert(work.job, EngineJob))

    async def _announce(self, execution: ExecutionId, stage_id: StageId, job: EngineJob) -> None:
        event = StageEngine(
            engine=job.engine,
            session_id=job.session_id,
            tag=job.tag,
            slots=job.slots,
            ui_url=job.ui_url,
        )

        def wish(turn: Turn) -> None:
            if stage_id in turn.state.stages:
                turn.add(Decided(event=event, stage_id=stage_id))

        await self._coordinator.submit(execution, wish)


def slots_for(work: LoopWork, slots_max: int) -> int:
    """As many as there are processors for, and no more than rows, or frames of a cursor, may run
    at once."""
    in_flight = work.policy.get("max_in_flight")
    if not isinstance(in_flight, int):
        return slots_max
    per_slot = None if work.mode == "cursor" else work.policy.get("row_concurrency")
    at_once = in_flight // int(per_slot) if isinstance(per_slot, int) else in_flight
    return max(1, min(slots_max, at_once))


def _tell(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("the slots of a stage failed", exc_info=error)
