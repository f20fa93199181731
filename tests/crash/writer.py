"""The process that is killed while it appends: racing appenders, and a word after each append.

Every event says in `meta` which append it came in, where in it and how large that was, so whoever
reads the log afterwards can tell a whole append from a torn one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, islice
from random import Random
from typing import Any, TypeVar

import msgspec

from noetl.domain.events.envelope import Draft
from noetl.domain.log import Append, AtEvent, StreamHead
from noetl.kernel.errors import LogUnavailable, VersionConflict
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import EventLog
from noetl.runtime.group_commit import GroupCommit
from noetl.testing.histories import History, begin, command_cycle, execution_ids, source_of
from noetl.wire.codec import seal
from tests.crash.stores import opened_log
from tests.crash.words import tell

EXECUTIONS = execution_ids(4)
APPENDERS = 2  # per execution: they race, and the one that loses must be told
BATCH_EVENTS_MAX = 5
VISITS_MAX = 100_000  # of a step in one round
RETRY_SECONDS = 0.05

T = TypeVar("T")


def main(order: dict[str, Any]) -> None:
    asyncio.run(write_for_ever(order["address"], order["round"]))


async def write_for_ever(address: str, round_number: int) -> None:
    async with opened_log(address) as log, asyncio.TaskGroup() as group:
        commits = GroupCommit(log)
        for execution in EXECUTIONS:
            for number in range(APPENDERS):
                appender = Appender(log, commits, execution, round_number * APPENDERS + number)
                group.create_task(appender.append_for_ever())


class Appender:
    """`number` is its own in the whole test, so that no two appenders make the same ids."""

    def __init__(
        self, log: EventLog, commits: GroupCommit, execution: ExecutionId, number: int
    ) -> None:
        self._log = log
        self._commits = commits
        self._execution = execution
        self._number = number
        self._history = History(execution, node=number)
        self._random = Random(f"{execution}/{number}")

    async def append_for_ever(self) -> None:
        drafts = self._cycles()
        for turn in count():
            batch = list(islice(drafts, self._random.randint(1, BATCH_EVENTS_MAX)))
            append = await self._land(batch, f"{self._number}/{turn}")
            tell(acknowledgement(append))

    def _cycles(self) -> Iterator[Draft]:
        step = StepName(f"step_{self._number % APPENDERS}")
        for visit in count(self._number * VISITS_MAX):
            yield from command_cycle(self._history, step, visit)

    async def _land(self, batch: list[Draft], name: str) -> Append:
        while True:
            head = await answer(lambda: self._log.head(self._execution))
            append = self._sealed(batch, name, head)
            try:
                await self._commits.append(append)
            except VersionConflict:
                continue
            except LogUnavailable:
                if not await self._has_landed(append):
                    continue
            return append

    async def _has_landed(self, append: Append) -> bool:
        """An append whose answer got lost is there or not."""
        last = AtEvent(append.events[-1].envelope.event_id)
        return await answer(lambda: self._log.version_at(self._execution, last)) is not None

    def _sealed(self, batch: list[Draft], name: str, head: StreamHead) -> Append:
        drafts = [*(begin(self._history) if head.version == 0 else ()), *batch]
        marked = [
            msgspec.structs.replace(
                draft, meta={"append": name, "index": index, "size": len(drafts)}
            )
            for index, draft in enumerate(drafts)
        ]
        sealed = seal(marked, head, source_of(self._execution))
        return Append(DEFAULT_SCOPE, self._execution, head.version, sealed)


async def answer(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the log answers: a server may be away for a while."""
    while True:
        try:
            return await ask()
        except LogUnavailable:
            await asyncio.sleep(RETRY_SECONDS)


def acknowledgement(append: Append) -> dict[str, Any]:
    return {
        "execution": append.execution_id,
        "version": append.expected_version + len(append.events),
        "event_id": append.events[-1].envelope.event_id,
        "checksums": [sealed.checksum for sealed in append.events],
    }
