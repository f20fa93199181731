"""Take work back from holders that went quiet. Only open work has a lease, so nothing that ended
is ever handed out again."""

import logging
from contextlib import suppress
from typing import NamedTuple

from noetl.decider.waits import TIMER, is_held_by_clock
from noetl.domain.execution.rows import CommandRow, FrameRow
from noetl.domain.work import CommandReport
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId, StepName, WorkerId
from noetl.kernel.instant import Instant, seconds_between
from noetl.ports.clock import Clock
from noetl.runtime import reports
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.log_lines import about
from noetl.runtime.measures import Measure
from noetl.runtime.reports_frames import REAPER, abandon_frame
from noetl.runtime.running import Running
from noetl.runtime.turn import Turn
from noetl.templates.recorded import inline_result

INTERVAL_SECONDS = 1.0
PAUSE_SECONDS_MIN = 0.02
LOST_LEASES = 3
"""A worker that has said nothing for so many leases is lost: all that it held went to others."""

_LOG = logging.getLogger(__name__)


class Reaper:
    def __init__(self, coordinator: Coordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._lost_seconds = LOST_LEASES * coordinator.held.terms.lease_seconds

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._pause_seconds())
            await self.look()

    def _pause_seconds(self) -> float:
        """Until something is due that we know of, and never longer than a round."""
        now = self._clock.now()
        due = [
            seconds_between(now, row.lease_until)
            for running in self._coordinator.running.values()
            for row in _timers(running)
            if row.lease_until is not None
        ]
        return max(PAUSE_SECONDS_MIN, min([INTERVAL_SECONDS, *due]))

    async def look(self) -> int:
        """One round over everything that is open; returns how many executions had lost work."""
        for execution in list(self._coordinator.neglected):
            self._coordinator.poke(execution)
        now = self._clock.now()
        for seat in self._coordinator.seats.take_lost(now, self._lost_seconds):
            _LOG.warning("worker lost", extra=about(worker=seat.worker.worker_id))
        self._coordinator.feed()  # a stage whose slots went silent is everybody's
        lost = [
            execution
            for execution, running in self._coordinator.running.items()
            if _overdue_commands(running, now) or _overdue_frames(running, now)
        ]
        for execution in lost:
            await self._take_back(execution)
        await self._fire(now)
        return len(lost)

    async def _fire(self, now: Instant) -> None:
        due = [
            execution
            for execution, running in self._coordinator.running.items()
            if _due_timers(running, now)
        ]
        for execution in due:
            with suppress(NoETLError):  # still due in the next round
                await self._coordinator.submit(execution, fire_due_timers)

    async def _take_back(self, execution: ExecutionId) -> None:
        try:
            taken = await self._coordinator.submit(execution, take_back_overdue)
        except NoETLError:  # told by the coordinator, and looked at again in the next round
            return
        for lease in taken:
            names = about(execution_id=execution, step=lease.step, worker=lease.worker_id)
            _LOG.warning("lease expired; the work is handed out again", extra=names)
            self._coordinator.measures.tell(lease.measure, 1)


class Lease(NamedTuple):
    """One that ran out."""

    measure: Measure
    step: StepName | None
    worker_id: WorkerId | None


def take_back_overdue(turn: Turn) -> list[Lease]:
    """What is overdue may be claimed again, and fails when it was lost too often.

    What does not fit into the turn is still overdue in the next round.
    """
    taken: list[Lease] = []
    for row in _overdue_commands(turn.running, turn.now):
        if turn.is_full:
            return taken
        taken.append(Lease("command_lease_expired", row.step, row.worker_id))
        reports.take_back(turn, row)
    for frame in _overdue_frames(turn.running, turn.now):
        if turn.is_full:
            return taken
        stage = turn.state.stages.get(frame.stage_id)
        step = None if stage is None else stage.step
        taken.append(Lease("frame_lease_expired", step, frame.worker_id))
        abandon_frame(turn, frame, reclaimer=REAPER)
    return taken


def _overdue_commands(running: Running, now: Instant) -> list[CommandRow]:
    return [
        row
        for row in running.state.commands.values()
        if row.lease_until is not None
        and row.lease_until < now
        and row.command_id not in running.void
        and not is_held_by_clock(row)
    ]


def _timers(running: Running) -> list[CommandRow]:
    """What only waits; a paused execution does not go on, however late it is."""
    if running.state.execution.status != "RUNNING":
        return []
    return [row for row in running.state.commands.values() if is_held_by_clock(row)]


def _due_timers(running: Running, now: Instant) -> list[CommandRow]:
    return [
        row for row in _timers(running) if row.lease_until is not None and row.lease_until <= now
    ]


def fire_due_timers(turn: Turn) -> None:
    """What does not fit into the turn is still due in the next round."""
    for row in _due_timers(turn.running, turn.now):
        if turn.is_full:
            return
        reports.command_ended(
            turn,
            CommandReport(
                execution_id=turn.running.execution_id,
                command_id=row.command_id,
                claim=row.claim,
                worker_id=TIMER,
                result=inline_result({"status": "ok", "until": row.lease_until}),
            ),
        )


def _overdue_frames(running: Running, now: Instant) -> list[FrameRow]:
    return [
        row
        for row in running.state.frames.values()
        if row.lease_until is not None and row.lease_until < now and row.worker_id is not None
    ]
