"""A piece of work in our hands: its lease by our own clock, and the slot that it takes."""

import asyncio
from typing import Literal, NamedTuple

from noetl.domain.work import (
    CommandWork,
    FrameWork,
    Heartbeat,
    NextAction,
    Work,
    heartbeat_of,
)
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import WorkerId
from noetl.kernel.instant import Instant
from noetl.ports.clock import Clock
from noetl.runtime.worker_slots import Place

LEASE_MARGIN = 0.1
"""The part of a lease that is not used: clocks drift, and a last start must still end in time."""

BEATS_PER_LEASE = 3
BEATS_PER_LEASE_IN_NEED = 10
"""When the last beat got no answer: soon enough for several more before the lease ends."""

Ending = Literal["lost", "stopped", "left"]


class Beats(NamedTuple):
    """By which clock heartbeats go, and how far apart they are at most."""

    clock: Clock
    seconds_max: float


class Held:
    """Counts its lease from before the request that confirmed it: never longer than the desk's."""

    def __init__(self, work: Work, place: Place, beats: "Beats", sent_at: float) -> None:
        self.work = work
        self.task: asyncio.Task[None] | None = None  # whoever works on it
        self.ended_as: Ending | None = None  # None: nobody has taken it from us
        self.is_leaving = False  # its worker goes: what runs may end, nothing begins
        self.is_beating = False
        self.is_reporting = False
        self._is_paused = False
        self._is_parked = False
        self._place = place
        self._clock = beats.clock
        self._beat_seconds_max = beats.seconds_max
        self._lease_until = work.lease_until
        self._safe_until = sent_at + work.lease_seconds * (1 - LEASE_MARGIN)
        self._beat_after(sent_at)

    @property
    def name(self) -> str:
        work = self.work
        return work.command_id if isinstance(work, CommandWork) else f"frame {work.frame_id}"

    @property
    def is_told_to_wait(self) -> bool:
        return self._is_paused or self.is_leaving

    @property
    def is_safe(self) -> bool:
        return self.ended_as is None and self._clock.monotonic() < self._safe_until

    def confirm(self, sent_at: float, lease_until: Instant | None) -> None:
        """The desk need not renew at every beat: an end that is not later is no longer lease."""
        if lease_until is None or lease_until > self._lease_until:
            self._lease_until = lease_until or self._lease_until
            self._safe_until = sent_at + self.work.lease_seconds * (1 - LEASE_MARGIN)
        self._beat_after(sent_at)

    def _beat_after(self, sent_at: float) -> None:
        seconds = min(self.work.lease_seconds / BEATS_PER_LEASE, self._beat_seconds_max)
        if isinstance(self.work, FrameWork) and self.work.heartbeat_seconds is not None:
            seconds = min(seconds, self.work.heartbeat_seconds)
        self.beat_due = sent_at + seconds

    def beat_again_soon(self) -> None:
        seconds = self.work.lease_seconds / BEATS_PER_LEASE_IN_NEED
        self.beat_due = self._clock.monotonic() + seconds

    def obey(self, action: NextAction) -> None:
        if action == "stop":
            self.take_away("stopped")
        else:
            self._is_paused = action == "wait"

    def leave(self) -> None:
        """What only waits for others can do so with whoever comes next."""
        self.is_leaving = True
        self.beat_due = self._clock.monotonic()  # nobody waits for what was cancelled meanwhile
        if self._is_parked:
            self.drop("left")

    def take_away(self, why: Ending) -> None:
        """A desk that has recorded our report refuses the beat that follows. Whoever waits for the
        answer to a report goes on waiting: it says the same, and brings further work."""
        if not self.is_reporting:
            self.drop(why)

    def drop(self, why: Ending) -> None:
        """Nothing of it will be reported any more."""
        if self.ended_as is None:
            self.ended_as = why
            if self.task is not None:
                self.task.cancel()

    def heartbeat(self, worker: WorkerId) -> Heartbeat:
        return heartbeat_of(self.work, worker)

    def check(self) -> None:
        if self.ended_as is not None:
            raise ClaimLost(self.name, f"was {self.ended_as}")
        if not self.is_safe:
            raise ClaimLost(self.name, "has had no answer to its heartbeats for a whole lease")

    async def park(self) -> None:
        self._place.leave()
        self._is_parked = True
        if self.is_leaving:
            self.drop("left")

    async def unpark(self) -> None:
        await self._place.come_back()
        self._is_parked = False
