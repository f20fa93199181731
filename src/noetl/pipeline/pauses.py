"""The pause between two tries of a task: a long one gives its slot to others."""

from noetl.pipeline.job import Hold
from noetl.ports.clock import Clock

SLOT_KEPT_SECONDS_MAX = 1.0
"""Shorter pauses are over before anybody else could use the slot."""


async def paused(seconds: float, hold: Hold, clock: Clock) -> None:
    """Raises ClaimLost when the lease did not last. Whoever is cancelled needs no slot again."""
    is_long = seconds > SLOT_KEPT_SECONDS_MAX
    if is_long:
        await hold.park()
    await clock.sleep(seconds)
    if is_long:
        await hold.unpark()
    hold.check()
