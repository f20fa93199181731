"""A log, objects and read models for tests of what may go."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.domain.events import Event
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant, plus
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.kernel.snowflake import minted_at
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from noetl.runtime.projector import Projector
from noetl.runtime.results_gc import (
    Collected,
    CollectionReport,
    CollectionRequest,
    ResultCollector,
)
from noetl.testing.histories import History, begin, execution_ids
from tests.memory_results import PLACEMENT
from tests.unit.runtime.written import write

LIVE, ORPHAN, ARCHIVED = execution_ids(3)
STEP = StepName("load")
DAY = 24 * 60 * 60.0
LATER = plus(minted_at(ARCHIVED), seconds=3 * DAY)
DELETE = CollectionRequest(dry_run=False)
EVERYTHING = CollectionRequest(dry_run=False, superseded=True)
CONTENT = b'{"value":1}'


def name_of(execution: ExecutionId, attempt: int = 1, scope: Scope = DEFAULT_SCOPE) -> ResultName:
    tenant, project = scope
    return ResultName(
        tenant=tenant, project=project, execution_id=execution, step=STEP, attempt=attempt
    )


def key_of(execution: ExecutionId, attempt: int = 1, scope: Scope = DEFAULT_SCOPE) -> str:
    return physical_key(name_of(execution, attempt, scope), PLACEMENT, "json")


def refers_to(execution: ExecutionId, attempt: int = 1) -> Result:
    uri = name_of(execution, attempt).uri
    return Result(status="ok", reference=ResultReference(type="object_store", uri=uri))


@dataclass
class HeldClock:
    moment: Instant = LATER

    def now(self) -> Instant:
        return self.moment

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Nobody waits here."""


class CompactedLog(MemoryEventLog):
    """A log from which events of some executions were moved away."""

    def __init__(self, archived: set[ExecutionId], clock: Callable[[], Instant]) -> None:
        super().__init__(clock)
        self._archived = archived

    async def is_archived(self, execution: ExecutionId) -> bool:
        return execution in self._archived


@dataclass
class Scene:
    """A log with what is alive, objects of all kinds, and read models that have caught up."""

    clock: HeldClock = field(default_factory=HeldClock)
    objects: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    archived: set[ExecutionId] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.recorded_at = minted_at(LIVE)
        self.log = CompactedLog(self.archived, lambda: self.recorded_at)
        self.projections = MemoryProjectionStore()

    async def runs(self, execution: ExecutionId, *events: Event) -> None:
        await self.begins(execution, *events)
        await self.catches_up()

    async def begins(self, execution: ExecutionId, *events: Event) -> None:
        history = History(execution)
        drafts = [*begin(history), *map(history.draft, events)]
        await write(self.log, execution, drafts, 100)

    async def catches_up(self) -> None:
        while await Projector(self.log, self.projections).advance():
            pass

    async def holds(self, *keys: str) -> None:
        for key in keys:
            await self.objects.create(key, CONTENT)

    async def keys(self) -> set[str]:
        return {facts.key for facts in await self.objects.list_objects("")}

    async def collect(self, request: CollectionRequest = DELETE) -> CollectionReport:
        return await self.collector().collect(DEFAULT_SCOPE, request)

    def results(self) -> ResultStore:
        chain = ReadChain([], self.objects, Path(tempfile.gettempdir()))
        return ResultStore(self.objects, ObjectPayloadStore(self.objects), PLACEMENT, chain)

    def collector(self) -> ResultCollector:
        collected = Collected(
            log=self.log,
            projections=self.projections,
            results=self.results(),
            clock=self.clock,
        )
        return ResultCollector(collected)


async def scene() -> Scene:
    made = Scene()
    await made.runs(LIVE)
    return made
