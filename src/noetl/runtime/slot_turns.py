"""Stages that share an engine: one whose first slot does not come gets the place of another's.

A slot stays until its stage is over, so an engine that is full would make later stages wait for
as long. Slots that are sent away end the rows that run, and leave.
"""

from collections.abc import Callable

from noetl.kernel.ids import StageId
from noetl.ports.clock import Clock
from noetl.runtime.seats import Seats

WAIT_SECONDS = 5.0
"""Where there is room, the first slot is there sooner."""

AGAIN_SECONDS = 10.0
"""Before one more is sent away: a task takes a while to start on a machine that is new to it."""


class SlotTurns:
    def __init__(self, seats: Seats, clock: Clock) -> None:
        self._seats = seats
        self._clock = clock

    def begin(self, stage_id: StageId) -> None:
        """The stage asks for all of its slots."""
        self._seats.gave_way.discard(stage_id)

    async def come(self, stage_id: StageId, is_wanted: Callable[[], bool]) -> None:
        """Returns when the first slot of the stage is there, or nobody wants any."""
        await self._clock.sleep(WAIT_SECONDS)
        try:
            while is_wanted() and stage_id not in self._seats.slots_by_stage():
                self._seats.waiting.add(stage_id)
                self._make_room()
                await self._clock.sleep(AGAIN_SECONDS)
        finally:
            self._seats.waiting.discard(stage_id)

    def end(self, stage_id: StageId) -> None:
        """There is room again: stages that gave way are to ask for all of their slots anew."""
        self._seats.gave_way.discard(stage_id)
        self._seats.waiting.discard(stage_id)
        if self._seats.waiting:
            return
        for each in self._seats.gave_way:
            self._seats.send_away(each)
        self._seats.gave_way.clear()

    def _make_room(self) -> None:
        """The stage with the most slots gives one, of several the one that came first."""
        slots = self._seats.slots_by_stage()
        if slots:
            richest = max(slots, key=lambda stage_id: slots[stage_id])
            self._seats.gave_way.add(richest)
            self._seats.send_away(richest, 1)
