"""Files that tools keep for an execution go when it is over; a failed one may still be retried.

Journals of a cancelled one stay as well: a retry asks them which rows had begun.
"""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Protocol

from noetl.domain.events import ExecutionCancelled, PlaybookCompleted
from noetl.domain.log import SealedEvent
from noetl.kernel import instant
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.runtime.coordinator import Coordinator

KEPT_DAYS = 7
_DAY_SECONDS = 86_400.0

_LOG = logging.getLogger(__name__)


class Kept(Protocol):
    """What is kept for each execution, in a place of its own."""

    async def forget(self, execution: ExecutionId) -> None: ...

    async def forget_untouched(self, before: Instant) -> None:
        """Of executions for which nothing was written since."""
        ...


class KeptInFolder:
    """One folder for each execution."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def forget(self, execution: ExecutionId) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder / execution, ignore_errors=True)

    async def forget_untouched(self, before: Instant) -> None:
        seconds = instant.to_datetime(before).timestamp()
        await asyncio.to_thread(_remove_old, self._folder, seconds)


async def sweep(coordinator: Coordinator, work: Kept, journals: Kept, now: Instant) -> None:
    """First what earlier processes left for too long, then each execution as it ends."""
    ended: asyncio.Queue[tuple[Kept, ExecutionId]] = asyncio.Queue()

    def has_failed_rows(execution: ExecutionId) -> bool:
        """A retry of a loop runs rows again that failed, and asks what they had done."""
        running = coordinator.running.get(execution)
        return running is not None and bool(running.state.kept_loops)

    def look(execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        if isinstance(events[-1].event, (PlaybookCompleted, ExecutionCancelled)):
            ended.put_nowait((work, execution))
        if isinstance(events[-1].event, PlaybookCompleted) and not has_failed_rows(execution):
            ended.put_nowait((journals, execution))

    coordinator.listeners.append(look)
    before = instant.plus(now, seconds=-KEPT_DAYS * _DAY_SECONDS)
    for kept in (work, journals):
        await _gone(kept.forget_untouched(before), "old executions")
    while True:
        kept, execution = await ended.get()
        await _gone(kept.forget(execution), f"execution {execution}")


async def _gone(removal: Awaitable[None], whose: str) -> None:
    """What a store does not let go now goes when it is old, at a later start."""
    try:
        await removal
    except NoETLError as error:
        _LOG.info("files of %s were left behind: %s", whose, error)


def _remove_old(folder: Path, before_seconds: float) -> None:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        try:
            if path.name.isdigit() and path.stat().st_mtime < before_seconds:
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:
            continue  # somebody else removed it
