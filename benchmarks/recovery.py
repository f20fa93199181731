"""`recovery.open_executions`: how long a start takes when executions with long logs are open.

One step again and again, ten thousand and some events each. Once every state is
folded from its first event and once from its newest snapshot; the read models are up to date both
times.
"""

import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count, islice
from pathlib import Path

from benchmarks.measurement import Measurement
from noetl.adapters.memory.catalog import MemoryCatalog
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.sqlite.projection_store import SqliteProjectionStore
from noetl.adapters.sqlite.snapshot_store import SqliteSnapshotStore
from noetl.adapters.system.clock import SystemClock, utc_now
from noetl.domain.events import PlaybookInitialized
from noetl.domain.events.envelope import Draft
from noetl.domain.log import APPEND_EVENTS_MAX, EMPTY_STREAM, Append, StreamHead
from noetl.domain.naming.placement import CellPlacement
from noetl.domain.snapshots import INTERVAL_EVENTS
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.kernel.snowflake import SnowflakeSequence
from noetl.ports.snapshot_store import SnapshotStore
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from noetl.runtime.coordinator import Coordinator, Held
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.projector import Projector
from noetl.runtime.recovery import Recovery
from noetl.testing.histories import History, command_cycle, execution_ids, source_of
from noetl.wire.codec import seal

EXECUTIONS = 20
EVENTS_EACH = (INTERVAL_EVENTS // 7 + 70) * 7 + 5
"""Seven for a visit of the step; of the last one there are four."""

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pages, path: bench/pages}
workflow:
  - {step: start, set: {ctx.page: 1}, next: fetch}
  - step: fetch
    tool: {kind: noop}
    next: {arcs: [{step: fetch, set: {ctx.page: "{{ ctx.page + 1 }}"}}]}
"""


class _Setting:
    """A log in a file, with read models and snapshots beside it."""

    def __init__(self, file: SqliteFile, log: SqliteEventLog) -> None:
        self.log = log
        self.projections = SqliteProjectionStore(file, utc_now)
        self.snapshots = SqliteSnapshotStore(file)
        ids, millis = SnowflakeSequence(1), count(1_767_225_600_000)
        self.new_id = lambda: ids.next(next(millis))
        objects = MemoryObjectStore()
        self.payloads = ObjectPayloadStore(objects)
        chain = ReadChain([], objects, Path())
        placement = CellPlacement("bench", "here", "one")
        self.results = ResultStore(objects, self.payloads, placement, chain)
        self.playbooks = Playbooks(MemoryCatalog(utc_now, self.new_id), self.payloads)

    def coordinator(self, snapshots: SnapshotStore | None) -> Coordinator:
        return Coordinator(
            Held(
                log=self.log,
                results=self.results,
                playbooks=self.playbooks,
                clock=SystemClock(),
                new_id=self.new_id,
                snapshots=snapshots,
            )
        )

    def projector(self) -> Projector:
        return Projector(self.log, self.projections, self.snapshots)


async def open_executions() -> AsyncIterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        file = SqliteFile(Path(folder) / "log.db")
        log = await SqliteEventLog.open(file, utc_now)
        await SqliteProjectionStore.open(file, utc_now)
        await SqliteSnapshotStore.open(file)
        setting = _Setting(file, log)
        await _write(setting)
        projector = setting.projector()
        while await projector.advance():
            pass
        whole = await _recover(setting, None)
        frozen = await _recover(setting, setting.snapshots)
        await file.close()
    yield Measurement(
        name="recovery.open_executions",
        value=frozen,
        unit="seconds with snapshots",
        limit=whole,
        limit_name="seconds to fold the same executions from their first events",
        detail={"executions": EXECUTIONS, "events": EXECUTIONS * EVENTS_EACH},
    )


async def _write(setting: _Setting) -> None:
    """A step again and again; its last command is held by a worker that we know nothing of."""
    entry = (await setting.playbooks.register(DEFAULT_SCOPE, PLAYBOOK)).entry
    for execution in execution_ids(EXECUTIONS):
        drafts = islice(_visits(History(execution), entry.digest), EVENTS_EACH)
        head = EMPTY_STREAM
        while page := list(islice(drafts, APPEND_EVENTS_MAX)):
            sealed = seal(page, head, source_of(execution))
            await setting.log.append([Append(DEFAULT_SCOPE, execution, head.version, sealed)])
            last = sealed[-1].envelope
            head = StreamHead(last.stream_version, last.event_id)


def _visits(history: History, digest: str) -> Iterator[Draft]:
    yield history.draft(PlaybookInitialized(path="bench/pages", playbook_digest=digest))
    for visit in count(1):
        yield from command_cycle(history, StepName("fetch"), visit)


async def _recover(setting: _Setting, snapshots: SnapshotStore | None) -> float:
    """With nobody dead: nothing is written, so that both times the same is read."""
    coordinator = setting.coordinator(snapshots)
    recovery = Recovery(coordinator, setting.projector(), setting.projections)
    started = time.perf_counter()
    found = await recovery.resume(DEFAULT_SCOPE)
    seconds = time.perf_counter() - started
    await coordinator.drain()
    if len(found) != EXECUTIONS or len(coordinator.running) != EXECUTIONS:
        raise AssertionError(found)
    return seconds


BENCHMARKS = {"recovery.open_executions": open_executions}
