"""How a process leaves its work: what runs may end within a limit, which signals cut short."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from noetl.runtime.coordinator import Coordinator
from noetl.runtime.slots_draining import drain_slots
from noetl.runtime.worker import Worker

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Leaving:
    """From then on nothing is handed out, and what our own worker and slots have not ended is
    handed back. Workers elsewhere keep what they have, for whoever serves next."""

    def __init__(self, coordinator: Coordinator, seconds_max: float) -> None:
        self._coordinator = coordinator
        self.seconds_max = seconds_max
        self.worker: Worker | None = None

    def hurry(self) -> None:
        """Wait for nothing."""
        self.seconds_max = 0.0

    async def leave(self) -> None:
        """Leaving again changes nothing."""
        self._coordinator.seats.is_closed = True
        with on_signals(SIGNALS, self._drop):
            slots = drain_slots(self._coordinator, lambda: self.seconds_max)
            await asyncio.gather(self._drained(), slots)
        await self._coordinator.drain()

    async def _drained(self) -> None:
        if self.worker is not None:
            await self.worker.drain(self.seconds_max)

    def _drop(self) -> None:
        self.hurry()
        if self.worker is not None:
            self.worker.drop()


@contextmanager
def on_signals(signals: tuple[signal.Signals, ...], act: Callable[[], None]) -> Iterator[None]:
    """Only the main thread of a process hears of signals; elsewhere there is nothing to do."""
    loop = asyncio.get_running_loop()
    heard = signals if threading.current_thread() is threading.main_thread() else ()
    for each in heard:
        loop.add_signal_handler(each, act)
    try:
        yield
    finally:
        for each in heard:
            loop.remove_signal_handler(each)
