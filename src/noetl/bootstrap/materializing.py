"""The materializer beside an engine: it follows the log, and its troubles are nobody else's."""

import asyncio
import logging
from collections.abc import Sequence

from noetl.bootstrap.platform import Platform
from noetl.domain.log import SealedEvent
from noetl.kernel.errors import InvariantBroken, NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.ports.clock import Clock
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.log_lines import about
from noetl.runtime.materializer import Materializer

_LOG = logging.getLogger(__name__)
PAUSE_SECONDS = 1.0
TROUBLE_SECONDS = 15.0
RETRY_SECONDS = 300.0
"""How often results that could not be filled in are looked at again."""


async def materialize(coordinator: Coordinator, platform: Platform) -> None:
    materializer = Materializer(platform.log, platform.projections, platform.results)
    clock = coordinator.held.clock
    has_news = asyncio.Event()
    has_news.set()  # what earlier processes left unchecked

    def wake(_execution: ExecutionId, _events: Sequence[SealedEvent]) -> None:
        has_news.set()

    coordinator.listeners.append(wake)
    tried_at = clock.monotonic() - RETRY_SECONDS
    while True:
        await _woken(has_news, RETRY_SECONDS)
        has_news.clear()
        is_due = clock.monotonic() - tried_at >= RETRY_SECONDS
        if is_due:
            tried_at = clock.monotonic()
        if not await _worked(materializer, clock, is_due=is_due):
            has_news.set()
        await clock.sleep(PAUSE_SECONDS)


async def _worked(materializer: Materializer, clock: Clock, *, is_due: bool) -> bool:
    """Whether the end of the log was reached; a store that is away is asked again later."""
    try:
        while await materializer.advance():
            pass
        if is_due:
            await materializer.retry()
    except InvariantBroken:
        raise
    except NoETLError as error:
        _LOG.warning("results are not checked for now: %s", error, extra=about(code=error.code))
        await clock.sleep(TROUBLE_SECONDS)
        return False
    return True


async def _woken(has_news: asyncio.Event, seconds_max: float) -> None:
    waiting = asyncio.ensure_future(has_news.wait())
    try:
        await asyncio.wait([waiting], timeout=seconds_max)
    finally:
        waiting.cancel()
