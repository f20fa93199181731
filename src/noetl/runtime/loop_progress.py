"""How far the loops of an execution have come: counts that agree with the log."""

from collections.abc import Iterable

import msgspec

from noetl.domain.events import LoopDone
from noetl.domain.events.loop import LoopStats
from noetl.domain.execution.rows import LoopRow
from noetl.domain.log import AtEvent
from noetl.kernel.ids import ExecutionId, StepName
from noetl.ports.event_log import EventLog
from noetl.wire.codec import open_stored


class LoopProgress(msgspec.Struct, frozen=True, kw_only=True):
    step: StepName
    visit: int
    mode: str
    total: int | None = None  # None: a cursor does not know
    done: int = 0
    failed: int = 0
    skipped: int = 0  # rows that the loop ended without, because it failed or was cancelled


async def loops_told(
    log: EventLog, execution: ExecutionId, rows: Iterable[LoopRow]
) -> list[LoopProgress]:
    """The newest try of every visit, in the order in which their loops first began."""
    newest: dict[tuple[StepName, int], LoopRow] = {}
    for row in sorted(rows, key=lambda row: int(row.started_event_id)):
        newest[row.step, row.visit] = row
    return [await _told(log, execution, row) for row in newest.values()]


async def _told(log: EventLog, execution: ExecutionId, row: LoopRow) -> LoopProgress:
    told = LoopProgress(
        step=row.step,
        visit=row.visit,
        mode=row.mode,
        total=row.total,
        done=row.done,
        failed=row.failed,
    )
    if not row.completed or row.status == "completed":
        return told
    stats = await _stats(log, execution, row)  # a row counts what was skipped as done
    if stats is None:
        return told
    return msgspec.structs.replace(
        told, done=stats.succeeded, failed=stats.failed, skipped=stats.skipped
    )


async def _stats(log: EventLog, execution: ExecutionId, row: LoopRow) -> LoopStats | None:
    if row.last_event_id is None:
        return None
    version = await log.version_at(execution, AtEvent(row.last_event_id)) or 1
    for stored in await log.read(execution, after_version=version - 1, limit=1):
        event = open_stored(stored).event
        if isinstance(event, LoopDone):
            return event.stats
    return None
