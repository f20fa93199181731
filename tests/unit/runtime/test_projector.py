"""Read models kept by the projector equal what a replay of the log says."""

from collections.abc import Iterator, Sequence
from itertools import chain

import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.domain.events import BusinessObjectChanged
from noetl.domain.events.envelope import Draft
from noetl.domain.execution.fold import FOLD_VERSION
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.log import EMPTY_STREAM, Append, Appended, AtEvent
from noetl.domain.projection import Cursor, ProjectionQuery, ProjectionRecord
from noetl.domain.read_models import NO_TENANT, PROJECTION_TYPES, SCOPES
from noetl.domain.snapshots import Snapshot
from noetl.domain.surfaces import Row, live_checksum_bundle
from noetl.kernel.canonical_json import sha256_hex
from noetl.kernel.errors import LogReplaced, LogUnavailable, StoreUnavailable
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.runtime.projector import SNAPSHOTS_KEPT, Projector
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.testing.histories import (
    History,
    begin,
    command_cycle,
    execution_ids,
    finish,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal

FIRST, SECOND = execution_ids(2)
STEP, LOOP = StepName("load"), StepName("each")


def story(execution: ExecutionId) -> Iterator[Draft]:
    history = History(execution, node=2 if execution == FIRST else 3)
    yield from begin(history)
    yield from command_cycle(history, STEP)
    for deleted in (False, True, False):
        order = BusinessObjectChanged(object="order", id="A-1", status="open", deleted=deleted)
        yield history.draft(order)
    yield from loop_of_frames(history, LOOP, frames=4)
    yield from list(command_cycle(history, STEP, visit=2))[:4]  # one command stays open
    if execution == SECOND:
        yield from finish(history, LOOP)


@pytest.fixture
async def log() -> MemoryEventLog:
    log = MemoryEventLog(lambda: Instant("2026-01-01T00:00:00.000000Z"))
    await fill(log)
    return log


async def fill(log: MemoryEventLog) -> None:
    for execution in (FIRST, SECOND):
        sealed = seal(list(story(execution)), EMPTY_STREAM, source_of(execution))
        (outcome,) = await log.append([Append(DEFAULT_SCOPE, execution, 0, sealed)])
        assert isinstance(outcome, Appended)


async def catch_up(projector: Projector, page: int) -> None:
    while await projector.advance(page):
        pass


async def live_rows(
    store: MemoryProjectionStore, execution: ExecutionId
) -> dict[Surface, list[Row]]:
    return {
        surface: [
            record.state
            for record in await store.query(
                ProjectionQuery(
                    scope=DEFAULT_SCOPE,
                    projection_type=PROJECTION_TYPES[surface],
                    execution_id=execution,
                    limit=1_000,
                )
            )
        ]
        for surface in SURFACES
    }


async def assert_parity(log: MemoryEventLog, store: MemoryProjectionStore) -> None:
    for execution in (FIRST, SECOND):
        request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
        replayed = (await Replay(log).state(request)).report.projection_checksums
        assert live_checksum_bundle(await live_rows(store, execution)) == replayed


@pytest.mark.parametrize("page", [1, 2, 3, 7, 1_000])
async def test_live_checksums_equal_replayed_ones(log: MemoryEventLog, page: int) -> None:
    store = MemoryProjectionStore()
    await catch_up(Projector(log, store), page)
    await assert_parity(log, store)


async def test_a_projector_that_restarts_after_every_page_loses_nothing(
    log: MemoryEventLog,
) -> None:
    store = MemoryProjectionStore()
    while await Projector(log, store).advance(3):
        pass
    await assert_parity(log, store)


class FailsEverySecondTime(MemoryProjectionStore):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    async def save(self, records: Sequence[ProjectionRecord], cursor: Cursor | None = None) -> int:
        self.calls += 1
        if self.calls % 2:
            raise StoreUnavailable("the store went away")
        return await super().save(records, cursor)


async def test_a_save_that_failed_is_made_again_from_what_was_saved(log: MemoryEventLog) -> None:
    store = FailsEverySecondTime()
    projector = Projector(log, store)
    moved = 1
    while moved:
        try:
            moved = await projector.advance(5)
        except StoreUnavailable:
            continue
    await assert_parity(log, store)


async def test_only_changed_open_rows_are_written(log: MemoryEventLog) -> None:
    written: list[str] = []

    class Remembers(MemoryProjectionStore):
        async def save(
            self, records: Sequence[ProjectionRecord], cursor: Cursor | None = None
        ) -> int:
            written.extend(record.projection_type for record in records)
            return await super().save(records, cursor)

    await catch_up(Projector(log, Remembers()), 1)

    events = len(list(chain(story(FIRST), story(SECOND))))
    assert written.count("execution") == events
    assert written.count("stage") < events / 2


async def test_read_models_of_another_log_are_not_continued(log: MemoryEventLog) -> None:
    store = MemoryProjectionStore()
    await Projector(log, store).advance(3)
    other = MemoryEventLog(lambda: Instant("2026-01-01T00:00:00.000000Z"), identity="other")
    with pytest.raises(LogReplaced):
        await Projector(other, store).advance()


class LosesItsWay(MemoryEventLog):
    """A log that does not answer when the projector asks for an earlier state."""

    failing = False

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        if self.failing and execution == SECOND:
            raise LogUnavailable("the log went away")
        return await super().scope_of(execution)


async def test_a_log_that_fails_half_way_through_a_page_is_not_folded_twice() -> None:
    log, store = (
        LosesItsWay(lambda: Instant("2026-01-01T00:00:00.000000Z")),
        MemoryProjectionStore(),
    )
    await fill(log)
    begun = Projector(log, store)
    while await begun.advance(3):  # until both executions have begun, and neither is over
        if await store.load(DEFAULT_SCOPE, "execution", SECOND) is not None:
            break
    projector = Projector(log, store)
    log.failing = True
    with pytest.raises(LogUnavailable):
        await projector.advance(1_000)
    log.failing = False
    await catch_up(projector, 1_000)
    await assert_parity(log, store)


async def test_read_models_that_were_cleared_are_rebuilt(log: MemoryEventLog) -> None:
    store = MemoryProjectionStore()
    projector = Projector(log, store)
    await projector.advance(20)
    await store.clear()
    await catch_up(projector, 20)
    await assert_parity(log, store)


async def test_executions_that_use_the_same_names_stay_apart() -> None:
    log = MemoryEventLog(lambda: Instant("2026-01-01T00:00:00.000000Z"))
    for execution in (FIRST, SECOND):
        history = History(execution)
        drafts = [*begin(history), *loop_of_frames(history, LOOP, frames=2)]
        sealed = seal(drafts, EMPTY_STREAM, source_of(execution))
        (outcome,) = await log.append([Append(DEFAULT_SCOPE, execution, 0, sealed)])
        assert isinstance(outcome, Appended)
    store = MemoryProjectionStore()
    await catch_up(Projector(log, store), 5)
    await assert_parity(log, store)


def at_versions(snapshots: list[Snapshot]) -> list[int]:
    return [snapshot.stream_version for snapshot in snapshots]


async def candidates(frozen: MemorySnapshotStore) -> list[Snapshot]:
    return await frozen.candidates(DEFAULT_SCOPE, FIRST, at_or_before=10_000)


async def test_states_are_frozen_by_interval(log: MemoryEventLog) -> None:
    frozen = MemorySnapshotStore()
    events = len(list(story(FIRST)))
    await catch_up(Projector(log, MemoryProjectionStore(), frozen, interval_events=10), 1)

    taken = await candidates(frozen)

    assert at_versions(taken) == list(range(events // 10 * 10, 0, -10))[:SNAPSHOTS_KEPT]
    for snapshot in taken:
        cutoff = AtEvent(snapshot.last_event_id)
        request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=FIRST, cutoff=cutoff)
        assert (await Replay(log).take_snapshot(request, snapshot.taken_at)) == snapshot


async def test_a_projector_that_starts_again_knows_what_was_frozen(log: MemoryEventLog) -> None:
    frozen, store = MemorySnapshotStore(), MemoryProjectionStore()
    while await Projector(log, store, frozen, interval_events=20).advance(1):
        pass

    versions = at_versions(await candidates(frozen))

    assert versions == [at for at in range(100, 0, -20) if at <= len(list(story(FIRST)))]


async def test_old_frozen_states_are_cleared_away(log: MemoryEventLog) -> None:
    frozen = MemorySnapshotStore()
    await catch_up(Projector(log, MemoryProjectionStore(), frozen, interval_events=1), 1)

    assert len(await candidates(frozen)) == SNAPSHOTS_KEPT


async def test_a_store_that_cannot_keep_frozen_states_holds_nothing_up(
    log: MemoryEventLog,
) -> None:
    class Full(MemorySnapshotStore):
        async def save(self, snapshot: Snapshot) -> None:
            raise StoreUnavailable("it is full")

    store = MemoryProjectionStore()
    await catch_up(Projector(log, store, Full(), interval_events=3), 3)
    await assert_parity(log, store)


async def test_the_read_models_know_which_scopes_there_are(log: MemoryEventLog) -> None:
    store = MemoryProjectionStore()
    await catch_up(Projector(log, store), 7)

    (known,) = await store.query(ProjectionQuery(scope=NO_TENANT, projection_type=SCOPES))

    assert known.state == {"tenant_id": "default", "organization_id": "default"}


async def test_every_record_says_of_which_events_it_was_made_and_when(
    log: MemoryEventLog,
) -> None:
    store = MemoryProjectionStore()
    late = Instant("2026-01-01T00:00:01.500000Z")
    await catch_up(Projector(log, store, now=lambda: late), 1_000)

    record = await store.load(DEFAULT_SCOPE, "execution", FIRST)

    drafts = list(story(FIRST))
    assert record is not None
    assert record.meta == {
        "event_count": len(drafts),
        "source_event_id": drafts[-1].event_id,
        "position": len(drafts),
        "event_time_watermark": drafts[-1].event_time,
        "fold_version": FOLD_VERSION,
        "projected_at": late,
        "projection_lag_ms": 1_500,
    }
    assert (record.position, record.source_event_id) == (len(drafts), drafts[-1].event_id)
    assert record.checksum == sha256_hex(record.canonical)
