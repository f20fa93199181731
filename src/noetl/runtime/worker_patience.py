"""Asking again: what may succeed later is tried until the right to go on has run out."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from noetl.kernel.errors import NoETLError
from noetl.ports.clock import Clock

PAUSE_SECONDS_FIRST = 0.1
PAUSE_SECONDS_MAX = 5.0

_Answer = TypeVar("_Answer")


async def insisted(
    ask: Callable[[], Awaitable[_Answer]], check: Callable[[], None], clock: Clock
) -> _Answer:
    """The answer, once there is one. Raises what `check` raises, and errors that will not pass."""
    pause = PAUSE_SECONDS_FIRST
    while True:
        check()
        try:
            return await ask()
        except NoETLError as error:
            if not error.retryable:
                raise
        await clock.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
