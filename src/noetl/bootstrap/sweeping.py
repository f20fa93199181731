"""Files that tools keep for an execution go when it is over; a failed one may still be retried.

Journals of a cancelled one stay as well: a retry asks them which rows had begun.
"""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from noetl.domain.events import ExecutionCancelled, PlaybookCompleted
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId
from noetl.runtime.coordinator import Coordinator

KEPT_DAYS = 7
_DAY_SECONDS = 86_400.0


async def sweep(coordinator: Coordinator, home: Path, now_seconds: float) -> None:
    """First what earlier processes left for too long, then each execution as it ends."""
    work, journals = home / "work", home / "journals"
    ended: asyncio.Queue[Path] = asyncio.Queue()

    def has_failed_rows(execution: ExecutionId) -> bool:
        """A retry of a loop runs rows again that failed, and asks what they had done."""
        running = coordinator.running.get(execution)
        return running is not None and bool(running.state.kept_loops)

    def look(execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        if isinstance(events[-1].event, (PlaybookCompleted, ExecutionCancelled)):
            ended.put_nowait(work / execution)
        if isinstance(events[-1].event, PlaybookCompleted) and not has_failed_rows(execution):
            ended.put_nowait(journals / execution)

    coordinator.listeners.append(look)
    for folder in (work, journals):
        await asyncio.to_thread(_remove_old, folder, now_seconds - KEPT_DAYS * _DAY_SECONDS)
    while True:
        await asyncio.to_thread(shutil.rmtree, await ended.get(), ignore_errors=True)


def _remove_old(folder: Path, before_seconds: float) -> None:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        try:
            if path.name.isdigit() and path.stat().st_mtime < before_seconds:
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:
            continue  # somebody else removed it
