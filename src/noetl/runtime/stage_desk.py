"""The work desk for workers that know only stages and frames: the same desk in their words."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from noetl.domain.execution.rows import FrameRow, StageRow
from noetl.domain.execution.state import Window
from noetl.domain.execution.windows import window_as_cursor
from noetl.domain.frame_messages import (
    FrameAsk,
    FrameBeat,
    FrameCommit,
    FrameDone,
    FrameKept,
    LentFrame,
)
from noetl.domain.projection import ProjectionQuery
from noetl.domain.work import (
    FrameQuestion,
    FrameWork,
    Heartbeat,
    NextAction,
    StageServed,
    WorkerIdentity,
)
from noetl.kernel.errors import (
    ClaimLost,
    FrameAlreadyTerminal,
    FrameNotFound,
    FrameOwnerMismatch,
    StageNotFound,
    StageOver,
)
from noetl.kernel.ids import ExecutionId, FrameId, StageId, WorkerId
from noetl.kernel.scope import Scope
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.work_desk import WorkDesk
from noetl.results.store import ResultStore
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.frame_outputs import report_of
from noetl.runtime.frame_work import work_again
from noetl.runtime.placing import source_told
from noetl.runtime.reports import lease_of
from noetl.runtime.running import Running

BOOT = "frames"
"""Such a worker has no incarnations: what it held before a restart it loses with its leases."""

LOOKS_MAX, EARLY_LOOKS_MAX, LOOK_SECONDS = 50, 5, 0.1
"""How long read models may take to hear of a frame's end: they follow the log at a distance."""

HOMES_MAX = 10_000
"""Frames of which it is remembered where they are; any other is looked for."""

_STAGE = msgspec.json.Decoder(StageRow)
_FRAME = msgspec.json.Decoder(FrameRow)


class Held(NamedTuple):
    running: Running
    row: FrameRow


@dataclass(slots=True)
class StageDesk:
    desk: WorkDesk
    coordinator: Coordinator
    projections: ProjectionStore
    results: ResultStore
    scope: Scope
    _homes: OrderedDict[FrameId, ExecutionId] = field(default_factory=OrderedDict)
    _turns: WeakValueDictionary[WorkerId, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def stage(self, stage_id: StageId) -> Running:
        """The execution that the open stage is of. Raises StageOver, StageNotFound."""
        for running in list(self.coordinator.running.values()):
            if stage_id in running.state.stages and running.source.scope == self.scope:
                return running
        for record in await self._records("stage", "stage_id", stage_id):
            if _STAGE.decode(record).closed_event_id is not None:
                raise StageOver(stage_id)
        raise StageNotFound(f"there is no open stage {stage_id}; see the stages of its execution")

    async def frame(self, frame_id: FrameId) -> Held:
        """The open frame. Raises FrameAlreadyTerminal, FrameNotFound."""
        for looks in range(LOOKS_MAX):
            held = self._open(frame_id)
            if held is not None:
                return held
            records = await self._records("frame", "frame_id", frame_id)
            for record in records:
                ended = _FRAME.decode(record)
                if ended.terminal_event_id is not None:
                    raise FrameAlreadyTerminal(frame_id, ended.terminal_event_id)
            if not records and looks >= EARLY_LOOKS_MAX:
                break  # nobody has ever heard of it
            await self.coordinator.held.clock.sleep(LOOK_SECONDS)
        raise FrameNotFound(f"there is no frame {frame_id}; frames are named by a claim")

    def _open(self, frame_id: FrameId) -> Held | None:
        """First where it was before: a holder speaks of its frame again and again."""
        home = self.coordinator.running.get(self._homes.get(frame_id, ExecutionId("")))
        if home is not None and (row := home.state.frames.get(frame_id)) is not None:
            return Held(home, row)
        for running in self.coordinator.running.values():
            row = running.state.frames.get(frame_id)
            if row is not None and running.source.scope == self.scope:
                self._homes[frame_id] = running.execution_id
                if len(self._homes) > HOMES_MAX:
                    self._homes.popitem(last=False)
                return Held(running, row)
        return None

    async def claim(self, stage_id: StageId, ask: FrameAsk) -> list[LentFrame]:
        """One question of a worker at a time: it has one seat."""
        running = await self.stage(stage_id)
        turn = self._turns.setdefault(ask.worker_id, asyncio.Lock())
        async with turn:
            question = _question(ask)
            if question is not None:
                known = running.holders.asked((stage_id, ask.worker_id, question))
                if known:
                    return [await self._still_lent(frame_id, ask) for frame_id in known]
            worker = _worker(running, stage_id, ask, question)
            frames = await self._claimed(worker, ask)
        return self._lent(running, frames)

    async def _claimed(self, worker: WorkerIdentity, ask: FrameAsk) -> tuple[FrameWork, ...]:
        """All that it was given; from then on nothing more is laid ready for it."""
        works = await self.desk.claim(worker, ask.requested_count, ask.wait_seconds)
        while True:
            with suppress(StageOver):
                works += await self.desk.claim(worker, 0, 0)
            seat = self.coordinator.seats.find(worker.worker_id)
            if seat is None or seat.promised == 0:
                return _frames_of(works)
            await seat.settled()

    async def _still_lent(self, frame_id: FrameId, ask: FrameAsk) -> LentFrame:
        """By the log, so that a server that was started anew knows it, too."""
        held = await self._held(frame_id, ask.worker_id)
        stage = held.running.state.stages.get(held.row.stage_id)
        policy = {} if stage is None else stage.frame_policy
        usual = self.coordinator.held.terms.lease_seconds
        work = work_again(held.running, held.row, lease_of(policy, usual, ask.lease_seconds))
        if work is None:
            raise _not_yours(held.row, "was taken back")
        return _lent(held, work)

    async def heartbeat(self, frame_id: FrameId, beat: FrameBeat) -> FrameKept:
        held = await self._held_by(frame_id, beat)
        said = Heartbeat(
            execution_id=held.running.execution_id,
            worker_id=beat.worker_id,
            claim=held.row.attempts,
            stage_id=held.row.stage_id,
            frame_id=frame_id,
            lease_seconds=beat.lease_seconds,
        )
        try:
            answer = await self.desk.heartbeat(said)
        except ClaimLost as lost:
            raise await self._lost(frame_id, lost) from lost
        return FrameKept(lease_until=answer.lease_until, next_action=answer.next_action)

    async def commit(self, frame_id: FrameId, commit: FrameCommit) -> FrameDone:
        held = await self._held_by(frame_id, commit)
        running, stage_id = held.running, held.row.stage_id
        report = await report_of(held.row, running, commit, self.results)
        try:
            reported = await self.desk.report(report)
        except ClaimLost as lost:
            raise await self._lost(frame_id, lost) from lost
        if reported.duplicate:
            raise await self._lost(frame_id, ClaimLost(f"frame {frame_id}", "is over"))
        frames = self._lent(running, _frames_of(reported.next_work))
        if commit.requested_count > len(frames):
            count = commit.requested_count - len(frames)
            ask = FrameAsk(worker_id=commit.worker_id, requested_count=count, wait_seconds=0.2)
            with suppress(StageOver, StageNotFound):
                frames += await self.claim(stage_id, ask)
        return FrameDone(ok=True, next_action=_next_action(running, stage_id), frames=tuple(frames))

    async def _held_by(self, frame_id: FrameId, said: FrameBeat | FrameCommit) -> Held:
        """Two processes can go by one name: a frame that went out again is told by its attempt."""
        held = await self._held(frame_id, said.worker_id)
        attempts = held.row.attempts
        if said.attempt is None and attempts > 1:
            raise _not_yours(held.row, f"went out {attempts} times; say `attempt` as its claim did")
        if said.attempt not in (None, attempts):
            raise _not_yours(held.row, f"is at attempt {attempts}, not {said.attempt}")
        return held

    async def _held(self, frame_id: FrameId, worker: WorkerId) -> Held:
        """Raises FrameAlreadyTerminal, FrameOwnerMismatch, FrameNotFound."""
        held = await self.frame(frame_id)
        if held.row.worker_id != worker:
            holder = held.row.worker_id or "nobody"
            raise _not_yours(held.row, f"is held by {holder}, not by {worker}")
        return held

    async def _lost(self, frame_id: FrameId, lost: ClaimLost) -> ClaimLost:
        """Why, as precisely as it can be known now."""
        try:
            held = await self.frame(frame_id)
        except FrameAlreadyTerminal as terminal:
            return terminal
        except FrameNotFound:
            return lost
        return _not_yours(held.row, "was taken over")

    async def _records(self, kind: str, name: str, value: str) -> list[bytes]:
        query = ProjectionQuery(
            scope=self.scope, projection_type=kind, where={name: value}, limit=1
        )
        return [record.canonical for record in await self.projections.query(query)]

    def _lent(self, running: Running, works: tuple[FrameWork, ...]) -> list[LentFrame]:
        """Without those that were taken back on the way."""
        rows = ((running.state.frames.get(work.frame_id), work) for work in works)
        return [_lent(Held(running, row), work) for row, work in rows if row is not None]


def _frames_of(works: Any) -> tuple[FrameWork, ...]:
    return tuple(work for work in works if isinstance(work, FrameWork))


def _question(ask: FrameAsk) -> FrameQuestion | None:
    slot, index = ask.cursor.get("worker_slot_id"), ask.cursor.get("frame_index")
    return None if slot is None or index is None else (str(slot), str(index))


def _worker(
    running: Running, stage_id: StageId, ask: FrameAsk, question: FrameQuestion | None
) -> WorkerIdentity:
    served = StageServed(
        execution_id=running.execution_id,
        stage_id=stage_id,
        is_shared=True,
        question=question,
        command_id=ask.command_id,
        source=source_told(ask.cursor),
    )
    return WorkerIdentity(
        worker_id=ask.worker_id,
        boot_id=BOOT,
        slots=ask.requested_count,
        serves=served,
        lease_seconds=ask.lease_seconds,
        locality=ask.locality.place,
        near=ask.locality.preferred,
        distance_max=ask.locality.max_distance,
    )


def _not_yours(row: FrameRow, reason: str) -> FrameOwnerMismatch:
    known = {
        "owner_worker": row.worker_id,
        "attempt": str(row.attempts),
        "lease_until": row.lease_until,
    }
    owner = {name: value for name, value in known.items() if value is not None}
    return FrameOwnerMismatch(row.frame_id, reason, owner)


def _lent(held: Held, work: FrameWork) -> LentFrame:
    running, row = held
    stage = running.state.stages.get(row.stage_id)
    return LentFrame(
        frame_id=row.frame_id,
        stage_id=row.stage_id,
        execution_id=running.execution_id,
        status=row.status,
        cursor=row.cursor or window_as_cursor(Window(work.first_index, work.row_count)),
        lease_until=row.lease_until or work.lease_until,
        dsl_ref=running.plan.reference(work.step),
        frame_policy={} if stage is None else stage.frame_policy,
        owner_worker=row.worker_id or WorkerId(""),
        attempt=row.attempts,
        row_count=work.row_count,
        parent_frame_id=row.parent_frame_id,
        claimed_event_id=row.claimed_event_id,
        work=msgspec.structs.replace(work, lease_until=row.lease_until or work.lease_until),
    )


def _next_action(running: Running, stage_id: StageId) -> NextAction:
    status = running.state.execution.status
    if status == "PAUSED":
        return "wait"
    return "continue" if status == "RUNNING" and stage_id in running.state.stages else "stop"
