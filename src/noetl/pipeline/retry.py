"""How long to wait before the next try; the caller brings the random number."""

from typing import Final

from noetl.domain.playbook.task import Backoff

PAUSE_SECONDS_MAX: Final = 86_400.0
JITTER_SHARE: Final = 0.5
"""`jitter: true` takes up to this share off the delay."""


def pause_seconds(backoff: Backoff, delay: float, multiplier: float, tries: int) -> float:
    """After `tries` failed tries, before jitter and the author's own upper bound."""
    match backoff:
        case "none":
            return 0.0
        case "fixed":
            return delay
        case "linear":
            return delay * tries
        case "exponential":
            return delay * _power(multiplier, tries - 1)


def spread(pause: float, jitter: bool | float, fraction: float) -> float:
    """`true` shortens the pause by a random share; a number adds up to that many seconds."""
    if jitter is True:
        return pause * (1.0 - JITTER_SHARE * fraction)
    return pause + float(jitter) * fraction


def bounded(pause: float, pause_max: float | None) -> float:
    limit = PAUSE_SECONDS_MAX if pause_max is None else min(pause_max, PAUSE_SECONDS_MAX)
    return max(0.0, min(pause, limit))


def _power(multiplier: float, exponent: int) -> float:
    try:
        return float(multiplier**exponent)
    except OverflowError:
        return PAUSE_SECONDS_MAX
