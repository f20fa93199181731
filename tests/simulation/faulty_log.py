"""A log that fails on cue: before an append lands, after it landed, and while others append."""

import asyncio
from collections.abc import Sequence
from random import Random

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.events import BusinessObjectChanged
from noetl.domain.events.envelope import Draft
from noetl.domain.log import Append, AppendOutcome, Cutoff, StoredEvent, StreamHead
from noetl.kernel.errors import LogUnavailable
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.testing.histories import source_of
from noetl.wire.codec import seal
from tests.unit.runtime.desk_scene import rising_ids
from tests.unit.runtime.worker_clock import VirtualClock

PAUSES_MAX = 4


class FaultyLog:
    """`faults` is the share of questions that go wrong; 0 ends all trouble."""

    def __init__(self, clock: VirtualClock, chance: Random) -> None:
        self.truth = MemoryEventLog(clock.now)
        self.faults = 0.0
        self._clock = clock
        self._chance = chance
        self._new_id = rising_ids(node=9)

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        await self._take_time()
        if self._fails():
            raise LogUnavailable("the log is away")
        if self._fails():
            for append in group:
                await self.intrude(append.execution_id)
        outcomes = await self.truth.append(group)
        await self._take_time()
        if self._fails():
            raise LogUnavailable("the answer got lost")
        return outcomes

    async def intrude(self, execution: ExecutionId) -> None:
        """Somebody else appends: whoever has decided by the state before is too late."""
        head = await self.truth.head(execution)
        if head.version == 0:
            return
        changed = BusinessObjectChanged(object="visit", id=self._new_id())
        draft = Draft(event_id=EventId(self._new_id()), event=changed, event_time=self._clock.now())
        sealed = seal([draft], head, source_of(execution))
        await self.truth.append([Append(DEFAULT_SCOPE, execution, head.version, sealed)])

    async def is_archived(self, execution: ExecutionId) -> bool:
        return await self.truth.is_archived(execution)

    async def head(self, execution: ExecutionId) -> StreamHead:
        await self._answer()
        return await self.truth.head(execution)

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        return await self.truth.scope_of(execution)

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        await self._answer()
        return await self.truth.read(execution, after_version=after_version, limit=limit)

    async def tail(
        self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        return await self.truth.tail(after_position=after_position, limit=limit)

    async def version_at(self, execution: ExecutionId, cutoff: Cutoff) -> int | None:
        return await self.truth.version_at(execution, cutoff)

    async def identity(self) -> str:
        return await self.truth.identity()

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _answer(self) -> None:
        await self._take_time()
        if self._fails():
            raise LogUnavailable("the log is away")

    async def _take_time(self) -> None:
        for _ in range(self._chance.randint(0, PAUSES_MAX)):
            await asyncio.sleep(0)

    def _fails(self) -> bool:
        return self._chance.random() < self.faults
