"""Points in time as text: UTC, microseconds, always 27 characters, so they sort as they read.

No clock is inside: time comes in as an argument.
"""

from datetime import UTC, datetime, timedelta
from typing import NewType

from noetl.kernel.errors import TimeInvalid

Instant = NewType("Instant", str)
"""`2026-11-15T21:00:00.000000Z`, and nothing else."""

_WIDTH = 27


def from_datetime(moment: datetime) -> Instant:
    if moment.tzinfo is None:
        raise TimeInvalid(moment.isoformat(), "has no time zone; attach one, e.g. tzinfo=UTC")
    try:
        utc = moment.astimezone(UTC)
    except OverflowError:
        raise TimeInvalid(moment.isoformat(), "is outside the years 1 to 9999 in UTC") from None
    return Instant(utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z")


def from_millis(epoch_millis: int) -> Instant:
    """Exact integer arithmetic: a float of seconds would lose the last digits."""
    return from_datetime(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=epoch_millis))


def to_millis(instant: Instant) -> int:
    """Whole ones: what is beyond them is left out."""
    return (to_datetime(instant) - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def parse(text: str) -> Instant:
    """Any ISO 8601 time that names its zone, as an Instant."""
    return from_datetime(_moment(text))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise TimeInvalid(text, "is not an ISO 8601 time") from None


def to_datetime(instant: Instant) -> datetime:
    return datetime.fromisoformat(instant)


def check(text: str) -> None:
    """Refuse text that is not exactly in the form of an Instant."""
    if not isinstance(text, str):
        raise TimeInvalid(repr(text), "is not text; build it with instant.from_datetime")
    # The eighth character tells a date from a week of the same width: 2026-01-01, 2026-W01-4.
    canonical = len(text) == _WIDTH and text[7] + text[10] + text[19] + text[26] == "-T.Z"
    if not canonical:
        raise TimeInvalid(text, f"is not in canonical form; use {parse(text)}")
    _moment(text)


def plus(instant: Instant, *, seconds: float) -> Instant:
    return from_datetime(to_datetime(instant) + timedelta(seconds=seconds))


def seconds_between(earlier: Instant, later: Instant) -> float:
    return (to_datetime(later) - to_datetime(earlier)).total_seconds()
