"""The time of day, from this machine."""

import asyncio
import time
from datetime import UTC, datetime

from noetl.kernel.instant import Instant, from_datetime


def utc_now() -> Instant:
    return from_datetime(datetime.now(UTC))


class SystemClock:
    def now(self) -> Instant:
        return utc_now()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
