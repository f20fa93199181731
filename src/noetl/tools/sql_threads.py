"""Databases inside this process: their work in threads that end when a call is stopped."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

THREADS_MAX = 8
INTERRUPT_SECONDS = 0.05

T = TypeVar("T")


class Interrupted(Exception):
    """Ends the work of a thread whose caller has gone."""


class Interruption:
    """What a thread looks at before each statement, and how to stop the one it is in."""

    def __init__(self) -> None:
        self._stops: Callable[[], Any] | None = None
        self._asked = threading.Event()

    def watch(self, interrupt: Callable[[], Any]) -> None:
        self._stops = interrupt

    def check(self) -> None:
        """Raises Interrupted once it was asked; whoever asked does not wait for an answer."""
        if self._asked.is_set():
            raise Interrupted

    def pause(self, seconds: float) -> None:
        """Ends early, by raising Interrupted, when it is asked meanwhile."""
        if self._asked.wait(seconds):
            raise Interrupted

    def ask(self) -> None:
        self._asked.set()
        if self._stops is not None:
            self._stops()


class SqlThreads:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix=name)

    async def run(self, work: Callable[[Interruption], T]) -> T:
        """When the caller is cancelled, returns only after the thread has let go."""
        interruption = Interruption()
        pending = self._executor.submit(work, interruption)
        running = asyncio.wrap_future(pending)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not pending.cancel():
                await stop(running, interruption)
            raise

    def begin(self, work: Callable[[], None]) -> None:
        """What nobody waits for."""
        self._executor.submit(work)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


async def stop(running: "asyncio.Future[Any]", interruption: Interruption) -> None:
    """Ask again until it is over: an interrupt between two statements stops neither."""
    while not running.done():
        interruption.ask()
        try:
            await asyncio.wait([running], timeout=INTERRUPT_SECONDS)
        except asyncio.CancelledError:
            continue  # cancelled twice is still cancelled; the thread is not to be left behind
    running.exception()  # looked at, or the loop would report it


class FileLocks:
    """One call at a time per file; a lock goes when nobody holds or awaits it."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def is_awaited(self, path: str) -> bool:
        """Whether somebody besides its holder wants the file."""
        _, users = self._locks.get(path, (None, 0))
        return users > 1

    @asynccontextmanager
    async def holding(self, path: str) -> AsyncIterator[None]:
        lock, users = self._locks.get(path, (asyncio.Lock(), 0))
        self._locks[path] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(path)
            if users > 1:
                self._locks[path] = (lock, users - 1)
