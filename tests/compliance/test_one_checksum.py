"""One history has one checksum, whichever store it lies in and however it got there."""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.domain.events import PlaybookInitialized
from noetl.domain.events.envelope import Draft
from noetl.domain.execution.fold import fold
from noetl.domain.log import Append, Appended, AtEvent
from noetl.domain.surfaces import checksum_bundle, state_checksum
from noetl.kernel.ids import StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import EventLog
from noetl.runtime.replay import Replay, ReplayReport, ReplayRequest
from noetl.testing.given import recorded
from noetl.testing.histories import (
    History,
    begin,
    command_cycle,
    execution_ids,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal
from tests.unit.specimens import PLACE, SPECIMENS

FIRST, SECOND = execution_ids(2)
LOAD, SEND = StepName("load"), StepName("send")
LONG_AGO = Instant("1999-12-31T23:59:59.999999Z")

pytestmark = pytest.mark.servers


def whole_history() -> list[Draft]:
    """Every kind of event there is, between steps and loops as a coordinator writes them."""
    history = History(FIRST)
    return [
        *begin(history),
        *command_cycle(history, LOAD, context={"é": [0.1, 1e300, 2**53 + 1], "日本": None}),
        *(
            history.draft(event, **PLACE)
            for event in SPECIMENS
            if not isinstance(event, PlaybookInitialized)
        ),
        *loop_of_frames(history, SEND, frames=3),
    ]


HISTORY = whole_history()


class Store(msgspec.Struct):
    """A log and the way it happens to be written to."""

    log: EventLog
    append_size: int
    locality: str


@pytest.fixture
async def stores(tmp_path: Path, postgres_dsn: str) -> AsyncIterator[list[Store]]:
    file = SqliteFile(tmp_path / "log.db")
    sqlite = await SqliteEventLog.open(file, utc_now)
    postgres = await PostgresEventLog.open(postgres_dsn, utc_now)
    yield [
        Store(MemoryEventLog(lambda: LONG_AGO), append_size=1, locality="here"),
        Store(sqlite, append_size=7, locality="there"),
        Store(postgres, append_size=500, locality="elsewhere"),
    ]
    await postgres.close()
    await file.close()


async def write(store: Store, drafts: Sequence[Draft]) -> None:
    """In appends of the store's own size, after strangers that move every position."""
    strangers = list(command_cycle(History(SECOND), LOAD))[: store.append_size]
    sealed = seal(strangers, await store.log.head(SECOND), source_of(SECOND))
    await store.log.append([Append(DEFAULT_SCOPE, SECOND, 0, sealed)])
    annotated = [
        msgspec.structs.replace(draft, annotations={"locality": store.locality}) for draft in drafts
    ]
    for start in range(0, len(annotated), store.append_size):
        head = await store.log.head(FIRST)
        sealed = seal(annotated[start : start + store.append_size], head, source_of(FIRST))
        (outcome,) = await store.log.append([Append(DEFAULT_SCOPE, FIRST, head.version, sealed)])
        assert isinstance(outcome, Appended), outcome


def request(version: int) -> ReplayRequest:
    cutoff = AtEvent(HISTORY[version - 1].event_id)
    return ReplayRequest(scope=DEFAULT_SCOPE, execution_id=FIRST, cutoff=cutoff)


async def reports(
    stores: list[Store], replay: Callable[[EventLog], Replay], version: int
) -> list[ReplayReport]:
    return [(await replay(store.log).state(request(version))).report for store in stores]


async def test_one_history_has_one_checksum_in_every_store(stores: list[Store]) -> None:
    for store in stores:
        await write(store, HISTORY)
    events = recorded(HISTORY, FIRST)

    for version in (1, 8, 20, 33, len(HISTORY)):
        replayed = await reports(stores, Replay, version)
        expected = fold(events[:version])
        assert {report.checksum for report in replayed} == {state_checksum(expected)}
        for report in replayed:
            assert report.projection_checksums == checksum_bundle(expected)
            assert report.events_folded == version

    whole = await reports(stores, Replay, len(HISTORY))
    assert len({report.position for report in whole}) > 1, "the stores placed the events alike"


async def test_a_state_frozen_in_one_store_goes_on_in_another(stores: list[Store]) -> None:
    for store in stores:
        await write(store, HISTORY)
    expected = state_checksum(fold(recorded(HISTORY, FIRST)))

    for origin in stores:
        frozen = MemorySnapshotStore()
        await frozen.save(await Replay(origin.log).take_snapshot(request(25), utc_now()))
        resumed = await reports(stores, partial(Replay, snapshots=frozen), len(HISTORY))
        assert {report.checksum for report in resumed} == {expected}
        assert {report.snapshot.stream_version for report in resumed} == {25}


async def test_the_bytes_of_every_event_are_the_same_in_every_store(stores: list[Store]) -> None:
    for store in stores:
        await write(store, HISTORY)
    written = [[row.canonical for row in await store.log.read(FIRST)] for store in stores]
    assert written[0] == written[1] == written[2]
    assert len(written[0]) == len(HISTORY)
