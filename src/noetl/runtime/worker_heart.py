"""Keeps the leases of a worker alive, all of them from one task."""

import asyncio
import math
from typing import Any

from noetl.kernel.errors import ClaimLost, InvariantBroken, NoETLError
from noetl.kernel.ids import WorkerId
from noetl.ports.clock import Clock
from noetl.ports.work_desk import WorkDesk
from noetl.runtime.worker_hold import BEATS_PER_LEASE_IN_NEED, Held


class Heart:
    def __init__(self, desk: WorkDesk, worker: WorkerId, clock: Clock) -> None:
        self._desk = desk
        self._worker = worker
        self._clock = clock
        self._held: set[Held] = set()
        self._wakes_at = math.inf
        self._is_needed = asyncio.Event()

    def keep(self, held: Held) -> None:
        self._held.add(held)
        if held.beat_due < self._wakes_at:
            self._is_needed.set()

    def let_go(self, held: Held) -> None:
        self._held.discard(held)

    def leave(self) -> None:
        """The worker goes: see `Held.leave`."""
        for held in list(self._held):
            held.leave()
        self._is_needed.set()

    def drop_all(self) -> None:
        for held in list(self._held):
            held.drop("left")

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Beats until it is cancelled. A slow answer for one lease holds up no other."""
        beats: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._is_needed.clear()
                now = self._clock.monotonic()
                for held in self._due(now):
                    held.is_beating = True
                    beat = group.create_task(self._keep_alive(held))
                    beats.add(beat)
                    beat.add_done_callback(beats.discard)
                waiting = (held.beat_due for held in self._held if not held.is_beating)
                self._wakes_at = min(waiting, default=math.inf)
                await self._sleep(self._wakes_at - now)
        finally:
            for beat in beats:
                beat.cancel()

    def _due(self, now: float) -> list[Held]:
        return [held for held in self._held if held.beat_due <= now and not held.is_beating]

    async def beat(self, held: Held) -> None:
        """Raises ClaimLost, and what else the desk has to say."""
        sent_at = self._clock.monotonic()
        answer = await self._desk.heartbeat(held.heartbeat(self._worker))
        held.confirm(sent_at, answer.lease_until)
        if held in self._held:  # it may have ended meanwhile: then there is nobody to stop
            held.obey(answer.next_action)

    async def make_sure(self, held: Held) -> None:
        """A claim may have waited so long that its lease, counted from before it, is over already.

        Then only a renewal tells how long it is ours, and a desk renews no lease that is young.
        Raises ClaimLost.
        """
        seconds = held.work.lease_seconds
        ends_at = self._clock.monotonic() + seconds  # at the very latest
        while not held.is_safe:
            if held.ended_as is not None or self._clock.monotonic() >= ends_at:
                raise ClaimLost(held.name, "was not confirmed while its lease could last")
            try:
                await self.beat(held)
            except (ClaimLost, InvariantBroken):
                raise
            except NoETLError:  # the desk is away; it may come back in time
                held.beat_again_soon()
            if not held.is_safe:
                await self._clock.sleep(seconds / BEATS_PER_LEASE_IN_NEED)

    async def _keep_alive(self, held: Held) -> None:
        try:
            await self.beat(held)
        except ClaimLost:
            if held in self._held:
                held.take_away("lost")
        except InvariantBroken:
            raise
        except NoETLError:  # the desk is away: the lease still has some time
            held.beat_again_soon()
        finally:
            held.is_beating = False
            self._is_needed.set()

    async def _sleep(self, seconds: float) -> None:
        """Until then, or until a lease needs us sooner."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._is_needed.wait())]
        if seconds < math.inf:
            waits.append(asyncio.create_task(self._wait(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _wait(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
