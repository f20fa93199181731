"""Logs with a history in them, and logs that something happened to."""

from collections.abc import Sequence

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.events.envelope import Draft
from noetl.domain.log import Append, Appended, StoredEvent
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant, from_millis
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.testing.histories import (
    START_MILLIS,
    History,
    begin,
    command_cycle,
    execution_ids,
    finish,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal

FIRST, SECOND, THIRD = execution_ids(3)
STEP = StepName("load")


class Ticking:
    """A clock that goes on by one second each time it is asked."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> Instant:
        self.seconds += 1
        return at_second(self.seconds)


def at_second(seconds: int) -> Instant:
    return from_millis(START_MILLIS + seconds * 1000)


class DamagedLog(MemoryEventLog):
    """The memory log, with rows that can be taken out or put in another's place."""

    def __init__(self) -> None:
        super().__init__(Ticking())
        self.replaced: dict[int, StoredEvent | None] = {}

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        rows = await super().read(execution, after_version=after_version, limit=limit)
        changed = [self.replaced.get(row.stream_version, row) for row in rows]
        return [row for row in changed if row is not None]


def whole_run(execution: ExecutionId = FIRST, frames: int = 2) -> list[Draft]:
    """A finished execution with a command and a loop: 9 events and 3 for every frame."""
    history = History(execution)
    return [
        *begin(history),
        *command_cycle(history, STEP),
        *loop_of_frames(history, STEP, frames),
        *finish(history, STEP),
    ]


async def write(log: EventLog, execution: ExecutionId, drafts: Sequence[Draft], size: int) -> None:
    """Append the drafts, `size` of them at a time."""
    for start in range(0, len(drafts), size):
        head = await log.head(execution)
        sealed = seal(drafts[start : start + size], head, source_of(execution))
        (outcome,) = await log.append([Append(DEFAULT_SCOPE, execution, head.version, sealed)])
        assert isinstance(outcome, Appended), outcome
