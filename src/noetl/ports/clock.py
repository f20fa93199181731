"""Now, and waiting: time as an argument, so that a test can hold it still."""

from typing import Protocol

from noetl.kernel.instant import Instant


class Clock(Protocol):
    def now(self) -> Instant:
        """The time of day, for what is recorded."""
        ...

    def monotonic(self) -> float:
        """Seconds that only rise, for leases and durations."""
        ...

    async def sleep(self, seconds: float) -> None: ...
