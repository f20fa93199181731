"""A log in memory that waits and fails when told, and remembers what came together."""

import asyncio
from collections.abc import Sequence

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.log import Append, AppendOutcome
from noetl.kernel.errors import LogError
from tests.unit.runtime.worker_clock import VirtualClock


class ObedientLog(MemoryEventLog):
    def __init__(self) -> None:
        super().__init__(VirtualClock().now)
        self.appends: list[list[str]] = []  # types of the events of each append that landed
        self.failures: list[LogError] = []  # raised one after the other, nothing is written
        self.losses: list[LogError] = []  # raised after the append has landed
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()

    def hold(self) -> None:
        self._may_go_on.clear()

    def let_go(self) -> None:
        self._may_go_on.set()

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        await self._may_go_on.wait()
        if self.failures:
            raise self.failures.pop(0)
        outcomes = await super().append(group)
        for append, outcome in zip(group, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self.appends.append([each.envelope.event_type for each in append.events])
        if self.losses:
            raise self.losses.pop(0)
        return outcomes
