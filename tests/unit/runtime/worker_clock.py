"""Time that stands still until it is told to move, and everybody has had a turn."""

import asyncio
import heapq
import itertools

from noetl.kernel.instant import Instant, from_millis

SETTLING_ROUNDS = 60
"""Turns of the loop after which nothing happens any more without the clock."""


async def settle() -> None:
    for _ in range(SETTLING_ROUNDS):
        await asyncio.sleep(0)


class VirtualClock:
    """Moves only when told; whoever sleeps wakes in order."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def now(self) -> Instant:
        return from_millis(int(self.seconds * 1000))

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._numbers), waked))
        await waked

    async def advance(self, seconds: float) -> None:
        target = self.seconds + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            self.seconds, _, waked = heapq.heappop(self._sleepers)
            if not waked.done():
                waked.set_result(None)
                await settle()
        self.seconds = target
        await settle()
