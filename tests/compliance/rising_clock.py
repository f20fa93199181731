"""A time of day that is later each time it is asked for."""

from itertools import count

from noetl.kernel.instant import Instant, from_millis


class RisingClock:
    def __init__(self) -> None:
        self._millis = count(1_767_225_600_000)

    def __call__(self) -> Instant:
        return from_millis(next(self._millis))
