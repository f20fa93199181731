"""One log and several ways into it, as several processes would have."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.domain.events import StepEntered
from noetl.domain.log import Append, StreamHead
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import EventLog
from noetl.testing.histories import History, source_of
from noetl.wire.codec import seal

Opened = AbstractAsyncContextManager[list[EventLog]]
Engine = Callable[[int], Opened]
"""Open an empty log so many times."""

STEP = StepName("load")


@asynccontextmanager
async def memory(ways_in: int) -> AsyncIterator[list[EventLog]]:
    log = MemoryEventLog(utc_now)
    yield [log] * ways_in


@asynccontextmanager
async def sqlite(ways_in: int) -> AsyncIterator[list[EventLog]]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        logs: list[EventLog] = []
        for _ in range(ways_in):
            file = SqliteFile(Path(folder) / "log.db")
            stack.push_async_callback(file.close)
            logs.append(await SqliteEventLog.open(file, utc_now))
        yield logs


ENGINES: dict[str, Engine] = {"memory": memory, "sqlite": sqlite}


def entered(execution: ExecutionId, head: StreamHead, events: int, *, node: int) -> Append:
    """An append of so many events; `node` keeps the ids of different writers apart."""
    history = History(execution, node=node)
    drafts = [
        history.draft(StepEntered(step=STEP, visit=head.version + number + 1), meta={"by": node})
        for number in range(events)
    ]
    return Append(DEFAULT_SCOPE, execution, head.version, seal(drafts, head, source_of(execution)))


def head_after(append: Append) -> StreamHead:
    last = append.events[-1].envelope
    return StreamHead(last.stream_version, last.event_id)
