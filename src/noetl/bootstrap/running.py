"""What a command needs of the system while it waits: a clock, and who holds the home."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.background import in_background
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.home import Holder, Home
from noetl.bootstrap.home_requests import answer_requests
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import HomeInUse
from noetl.ports.clock import Clock

LOOK_SECONDS = 0.2
"""How often to look whether the home is free."""


def system_clock() -> Clock:
    return SystemClock()


def holder_of(settings: Settings) -> Holder | None:
    """The process that holds the home now; None when nobody does."""
    return Home(Path(settings.home)).holder()


@asynccontextmanager
async def engine_or_holder(
    settings: Settings,
    wait_seconds: float | None,
    waiting: Callable[[HomeInUse], None],
    *,
    has_worker: bool = True,
) -> AsyncIterator[Engine | Holder]:
    """An engine of our own, or the holder that listens. Waits for one that does not.

    Our own goes on with nothing that it was not asked for.
    `waiting` is told once. Raises HomeInUse when the time is over; None waits for as long as it
    takes.
    """
    clock = system_clock()
    began, is_told = clock.monotonic(), False
    async with AsyncExitStack() as stack:
        while True:
            holder = holder_of(settings)
            if holder is not None and holder.address is not None:
                yield holder
                return
            try:
                engine = await stack.enter_async_context(
                    open_engine(settings, has_worker=has_worker, resumes=False)
                )
                break
            except HomeInUse as refusal:
                if wait_seconds is not None and clock.monotonic() - began >= wait_seconds:
                    raise
                if not is_told:
                    waiting(refusal)
                    is_told = True
            await clock.sleep(LOOK_SECONDS)
        await stack.enter_async_context(in_background(answer_requests(engine)))
        yield engine
