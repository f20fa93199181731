"""How fast rows are done of late: what a loop did before a break, or on another engine, is past."""

from collections import deque

from noetl.kernel.instant import Instant, seconds_between

SAMPLE_SECONDS = 1.0
SAMPLES_MAX = 30
"""So the pace is that of the last half minute, or of the last frames where they take longer."""


class Pace:
    def __init__(self, now: Instant, done: int = 0) -> None:
        self._samples: deque[tuple[Instant, int]] = deque([(now, done)], maxlen=SAMPLES_MAX)

    def hear(self, now: Instant, done: int) -> None:
        if seconds_between(self._samples[-1][0], now) >= SAMPLE_SECONDS:
            self._samples.append((now, done))

    def rows_per_second(self, now: Instant, done: int) -> float | None:
        """None while nothing is known."""
        since, before = self._samples[0]
        seconds = seconds_between(since, now)
        return (done - before) / seconds if seconds > 0 and done > before else None
