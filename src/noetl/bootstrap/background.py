"""Services beside a program: they live as long as a block, and their failure ends it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """A service that lives as long as the block; its failure ends the block."""
    owner = asyncio.current_task()
    task = asyncio.create_task(work)

    def end_the_block(done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            _LOG.error("a service failed: %s", type(error).__name__, exc_info=error)
            if owner is not None:
                owner.cancel()

    task.add_done_callback(end_the_block)
    try:
        yield
    except asyncio.CancelledError:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error from None
        raise
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
