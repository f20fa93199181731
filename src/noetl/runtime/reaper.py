"""Take work back from holders that went quiet. Only open work has a lease, so nothing that ended
is ever handed out again."""

from contextlib import suppress

from noetl.domain.execution.rows import CommandRow, FrameRow
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.ports.clock import Clock
from noetl.runtime import reports
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.running import Running
from noetl.runtime.turn import Turn

INTERVAL_SECONDS = 1.0


class Reaper:
    def __init__(self, coordinator: Coordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(INTERVAL_SECONDS)
            await self.look()

    async def look(self) -> int:
        """One round over everything that is open; returns how many executions had lost work."""
        for execution in list(self._coordinator.neglected):
            self._coordinator.poke(execution)
        now = self._clock.now()
        lost = [
            execution
            for execution, running in self._coordinator.running.items()
            if _overdue_commands(running, now) or _overdue_frames(running, now)
        ]
        for execution in lost:
            await self._take_back(execution)
        return len(lost)

    async def _take_back(self, execution: ExecutionId) -> None:
        with suppress(NoETLError):  # it is looked at again in the next round
            await self._coordinator.submit(execution, take_back_overdue)


def take_back_overdue(turn: Turn) -> None:
    """What is overdue may be claimed again, and fails when it was lost too often.

    What does not fit into the turn is still overdue in the next round.
    """
    for row in _overdue_commands(turn.running, turn.now):
        if turn.is_full:
            return
        reports.take_back(turn, row)
    for frame in _overdue_frames(turn.running, turn.now):
        if turn.is_full:
            return
        reports.abandon_frame(turn, frame)


def _overdue_commands(running: Running, now: Instant) -> list[CommandRow]:
    return [
        row
        for row in running.state.commands.values()
        if row.lease_until is not None
        and row.lease_until < now
        and row.command_id not in running.void
    ]


def _overdue_frames(running: Running, now: Instant) -> list[FrameRow]:
    return [
        row
        for row in running.state.frames.values()
        if row.lease_until is not None and row.lease_until < now and row.worker_id is not None
    ]
