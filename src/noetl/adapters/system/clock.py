"""The time of day, from this machine."""

from datetime import UTC, datetime

from noetl.kernel.instant import Instant, from_datetime


def utc_now() -> Instant:
    return from_datetime(datetime.now(UTC))
