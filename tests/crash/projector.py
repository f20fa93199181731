"""The process that is killed while it projects: appends, then saves records with their cursor.

Log, read models and snapshots lie in one file, as in the embedded profile.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import Any, NamedTuple

import msgspec

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.sqlite.projection_store import SqliteProjectionStore
from noetl.adapters.sqlite.snapshot_store import SqliteSnapshotStore
from noetl.adapters.system.clock import utc_now
from noetl.domain.events.envelope import Draft
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.state import CommandRow, ExecutionState
from noetl.domain.log import Append, AtPosition, StoredEvent
from noetl.domain.projection import Cursor, ProjectionRecord
from noetl.domain.surfaces import plain
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.testing.histories import History, begin, command_cycle, execution_ids, source_of
from noetl.wire.codec import open_stored, seal
from tests.crash.words import tell

EXECUTIONS = execution_ids(2)
STEP = StepName("load")
CONSUMER = "projector/0"
PAGE_EVENTS = 9
SNAPSHOT_EVERY = 3  # pages
VISITS_MAX = 100_000  # of a step in one round


class Stores(NamedTuple):
    log: EventLog
    projections: ProjectionStore
    snapshots: SnapshotStore


@asynccontextmanager
async def opened_stores(address: str) -> AsyncIterator[Stores]:
    file = SqliteFile(address)
    try:
        yield Stores(
            await SqliteEventLog.open(file, utc_now),
            await SqliteProjectionStore.open(file, utc_now),
            await SqliteSnapshotStore.open(file),
        )
    finally:
        await file.close()


def main(order: dict[str, Any]) -> None:
    asyncio.run(project_for_ever(order["address"], order["round"]))


async def project_for_ever(address: str, round_number: int) -> None:
    async with opened_stores(address) as stores:
        for execution in EXECUTIONS:
            await _append(stores.log, execution, list(begin(History(execution))), only_first=True)
        projector = await Projector.resumed(stores)
        chance = Random(round_number)
        histories = [History(execution, node=round_number + 3) for execution in EXECUTIONS]
        for turn in count(1):
            history = chance.choice(histories)
            visit = round_number * VISITS_MAX + turn
            await _append(stores.log, history.execution, [*command_cycle(history, STEP, visit)])
            position = await projector.project_a_page()
            if turn % SNAPSHOT_EVERY == 0:
                await projector.freeze()
            tell({"position": position})


async def _append(
    log: EventLog, execution: ExecutionId, drafts: Sequence[Draft], *, only_first: bool = False
) -> None:
    head = await log.head(execution)
    if only_first and head.version:
        return
    sealed = seal(drafts, head, source_of(execution))
    await log.append([Append(DEFAULT_SCOPE, execution, head.version, sealed)])


class Projector:
    def __init__(self, stores: Stores, position: int, folds: dict[ExecutionId, "Fold"]) -> None:
        self._stores = stores
        self._position = position
        self._folds = folds

    @classmethod
    async def resumed(cls, stores: Stores) -> "Projector":
        """The states as they were at the cursor, from snapshots where there are any."""
        cursor = await stores.projections.cursor(CONSUMER)
        position = 0 if cursor is None else cursor.position
        replay = Replay(stores.log, stores.snapshots)
        folds = {}
        for execution in EXECUTIONS:
            replayed = await replay.state(request(execution, position))
            folds[execution] = Fold(replayed.state)
        return cls(stores, position, folds)

    async def project_a_page(self) -> int:
        log, projections, _ = self._stores
        page = await log.tail(after_position=self._position, limit=PAGE_EVENTS)
        for stored in page:
            self._folds[stored.execution_id].add(stored)
        touched = {stored.execution_id for stored in page}
        records = [record for name in sorted(touched) for record in self._folds[name].records()]
        self._position = page[-1].position
        identity = await log.identity()
        cursor = Cursor(consumer=CONSUMER, log_identity=identity, position=self._position)
        stale = await projections.save(records, cursor)
        assert stale == 0, f"{stale} records were saved before"
        return self._position

    async def freeze(self) -> None:
        log, _, snapshots = self._stores
        for execution in EXECUTIONS:
            wanted = request(execution, self._position)
            await snapshots.save(await Replay(log).take_snapshot(wanted, utc_now()))


class Fold:
    """One execution's state, and the records that its latest events changed."""

    def __init__(self, state: ExecutionState) -> None:
        self.state = state
        self._finished: list[CommandRow] = []
        self._position = 0

    def add(self, stored: StoredEvent) -> None:
        recorded = open_stored(stored)
        accumulator = Accumulator(self.state, lambda _, row: self._retire(row))
        evolve(accumulator, recorded.envelope, recorded.event)
        self._position = stored.position

    def records(self) -> list[ProjectionRecord]:
        commands = [*self._finished, *self.state.commands.values()]
        self._finished = []
        return [self._record(*each) for each in states(self.state, commands).items()]

    def _retire(self, row: msgspec.Struct) -> None:
        assert isinstance(row, CommandRow)
        self._finished.append(row)

    def _record(self, key: tuple[str, str], canonical: bytes) -> ProjectionRecord:
        return ProjectionRecord(
            scope=DEFAULT_SCOPE,
            projection_type=key[0],
            projection_id=key[1],
            execution_id=self.state.execution.execution_id,
            version=self.state.stream_version,
            position=self._position,
            source_event_id=self.state.execution.last_event_id or EventId(""),
            canonical=canonical,
            checksum=canonical_json.sha256_hex(canonical),
        )


def states(state: ExecutionState, commands: Iterable[CommandRow]) -> dict[tuple[str, str], bytes]:
    """The canonical states of the read models by their type and id."""
    made: dict[tuple[str, str], msgspec.Struct] = {
        ("execution", state.execution.execution_id): state.execution
    }
    for row in commands:
        made["command", row.command_id] = row
    return {key: canonical_json.encode(plain(row)) for key, row in made.items()}


def request(execution: ExecutionId, position: int) -> ReplayRequest:
    return ReplayRequest(
        scope=DEFAULT_SCOPE, execution_id=execution, cutoff=AtPosition(position=position)
    )
