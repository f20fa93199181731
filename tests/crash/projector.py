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
from noetl.domain.execution.rows import CommandRow
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import Append, AtPosition
from noetl.domain.surfaces import plain
from noetl.kernel import canonical_json
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.runtime.projector import CONSUMER, Projector
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.testing.histories import History, begin, command_cycle, execution_ids, source_of
from noetl.wire.codec import seal
from tests.crash.words import tell

EXECUTIONS = execution_ids(2)
STEP = StepName("load")
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
        projector = Projector(*stores)
        chance = Random(round_number)
        histories = [History(execution, node=round_number + 3) for execution in EXECUTIONS]
        for turn in count(1):
            history = chance.choice(histories)
            visit = round_number * VISITS_MAX + turn
            await _append(stores.log, history.execution, [*command_cycle(history, STEP, visit)])
            await projector.advance(PAGE_EVENTS)
            cursor = await stores.projections.cursor(CONSUMER)
            assert cursor is not None
            if turn % SNAPSHOT_EVERY == 0:
                await _freeze(stores, cursor.position)
            tell({"position": cursor.position})


async def _append(
    log: EventLog, execution: ExecutionId, drafts: Sequence[Draft], *, only_first: bool = False
) -> None:
    head = await log.head(execution)
    if only_first and head.version:
        return
    sealed = seal(drafts, head, source_of(execution))
    await log.append([Append(DEFAULT_SCOPE, execution, head.version, sealed)])


async def _freeze(stores: Stores, position: int) -> None:
    for execution in EXECUTIONS:
        taken = await Replay(stores.log).take_snapshot(request(execution, position), utc_now())
        await stores.snapshots.save(taken)


def states(state: ExecutionState, commands: Iterable[CommandRow]) -> dict[tuple[str, str], bytes]:
    """The canonical states of the read models by their type and id."""
    made: dict[tuple[str, str], msgspec.Struct] = {
        ("execution", state.execution.execution_id): state.execution
    }
    for row in commands:
        made["command", f"{state.execution.execution_id}/{row.command_id}"] = row
    return {key: canonical_json.encode(plain(row)) for key, row in made.items()}


def request(execution: ExecutionId, position: int) -> ReplayRequest:
    return ReplayRequest(
        scope=DEFAULT_SCOPE, execution_id=execution, cutoff=AtPosition(position=position)
    )
