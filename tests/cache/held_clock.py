"""A time of day that moves only when told."""

from noetl.kernel.instant import Instant, from_millis, plus

START = from_millis(1_767_225_600_000)


class HeldClock:
    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> Instant:
        return self.time

    def pass_seconds(self, seconds: float) -> None:
        self.time = plus(self.time, seconds=seconds)

    def later(self, seconds: float) -> Instant:
        return plus(self.time, seconds=seconds)
