"""The slot of a frame whose rows run side by side."""

import asyncio

from noetl.pipeline.job import Hold


class SharedSlot:
    """The frame's slot, used by rows that run side by side: free while all of them wait."""

    def __init__(self, hold: Hold, rows: int) -> None:
        self._hold = hold
        self._running = rows
        self._waiting = 0
        self._turn = asyncio.Lock()

    def check(self) -> None:
        self._hold.check()

    async def park(self) -> None:
        async with self._turn:
            self._waiting += 1
            await self._stop_running()

    async def unpark(self) -> None:
        async with self._turn:
            if self._running == 0:
                await self._hold.unpark()
            self._running += 1
            self._waiting -= 1

    async def leave(self) -> None:
        """No more rows. The last to leave keeps the slot, for the report."""
        async with self._turn:
            await self._stop_running()

    async def _stop_running(self) -> None:
        self._running -= 1
        if self._running == 0 and self._waiting > 0:
            await self._hold.park()
