"""tail -> fold -> save with position. The only writer of read models.

At least once: a page that was folded and not saved is folded again, to the same records. States
that have come far are frozen on the way, after their page is saved: appends never wait for that.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby

import msgspec

from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import AtPosition, StoredEvent
from noetl.domain.projection import Cursor, ProjectionRecord
from noetl.domain.read_models import (
    SourcePlace,
    record_of,
    scope_record,
    start_key_record,
    write_meta,
)
from noetl.domain.snapshots import INTERVAL_EVENTS, is_due
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.runtime.log_cursor import load_cursor
from noetl.runtime.replay import Replay, ReplayRequest, freeze
from noetl.wire.codec import open_stored
from noetl.wire.upcasters import RELEASED

CONSUMER = "projector"
SNAPSHOTS_KEPT = 8
"""Older ones serve a look into the past, and what was issued before the newest one."""

STATES_MAX = 1_000
"""Executions whose state is kept at hand; the others are replayed when an event comes."""


class _Known(msgspec.Struct):
    """A state at hand, and the bytes of its open rows as they were last saved."""

    state: ExecutionState
    saved: dict[str, bytes]
    frozen_version: int = 0  # of its newest snapshot


class Projector:
    def __init__(
        self,
        log: EventLog,
        projections: ProjectionStore,
        snapshots: SnapshotStore | None = None,
        *,
        interval_events: int = INTERVAL_EVENTS,
        now: Callable[[], Instant] | None = None,
    ) -> None:
        """Without a clock a record says that it was made when its last event was recorded."""
        self._log = log
        self._projections = projections
        self._snapshots = snapshots
        self._interval_events = interval_events
        self._now = now
        self._replay = Replay(log, snapshots)
        self._scopes: set[Scope] = set()  # those that the read models know
        self._known: OrderedDict[ExecutionId, _Known] = OrderedDict()
        self._cursor: Cursor | None = None

    async def advance(self, limit: int = PAGE_EVENTS_MAX) -> int:
        """Project the next page of the log; returns how many events it had, 0 at the end."""
        cursor = await load_cursor(self._log, self._projections, CONSUMER)
        # States that run ahead of what is saved must not be used again: until the page is saved
        # they are out of reach, whatever goes wrong on the way.
        known, self._known = self._known, OrderedDict()
        if cursor != self._cursor:
            known.clear()  # somebody cleared or moved the read models
            self._scopes.clear()
        page = await self._log.tail(after_position=cursor.position, limit=limit)
        records: list[ProjectionRecord] = []
        for execution, rows in _by_execution(page):
            if execution not in known:
                is_new = rows[0].stream_version == 1
                known[execution] = (
                    _Known(ExecutionState(), {}) if is_new else await self._at(execution, cursor)
                )
            known.move_to_end(execution)
            projected_at = rows[-1].ingest_time if self._now is None else self._now()
            records += _project(known[execution], rows, projected_at)
        if page:
            cursor = msgspec.structs.replace(cursor, position=page[-1].position)
            await self._projections.save([*records, *self._new_scopes(records)], cursor)
            self._scopes.update(record.scope for record in records)
        for execution, rows in _by_execution(page):
            await self._freeze(known[execution], rows[-1])
        while len(known) > STATES_MAX:
            known.popitem(last=False)
        self._known, self._cursor = known, cursor
        return len(page)

    async def _at(self, execution: ExecutionId, cursor: Cursor) -> _Known:
        """The state as the read models have it: at the cursor, not at the head of the log."""
        scope = await self._log.scope_of(execution)
        if scope is None or cursor.position == 0:
            return _Known(ExecutionState(), {})
        at_cursor = AtPosition(cursor.position)
        request = ReplayRequest(scope=scope, execution_id=execution, cutoff=at_cursor)
        replayed = await self._replay.state(request)
        return _Known(replayed.state, {}, replayed.report.snapshot.stream_version or 0)

    def _new_scopes(self, records: Iterable[ProjectionRecord]) -> Iterator[ProjectionRecord]:
        """Whoever starts up asks which scopes there are before it asks for their executions."""
        for scope, first in {record.scope: record for record in records}.items():
            if scope not in self._scopes:
                yield scope_record(first)

    async def _freeze(self, known: _Known, last: StoredEvent) -> None:
        """Losing a snapshot costs time and never truth, so trouble with the store is let pass."""
        state = known.state
        due = is_due(state.stream_version, known.frozen_version, self._interval_events)
        if self._snapshots is None or not due:
            return
        scope = Scope(state.execution.tenant_id, state.execution.organization_id)
        snapshot = freeze(state, scope, last.position, last.ingest_time, RELEASED.digest)
        with suppress(NoETLError):
            await self._snapshots.save(snapshot)
            known.frozen_version = snapshot.stream_version
            await self._snapshots.prune(scope, snapshot.execution_id, keep=SNAPSHOTS_KEPT)


def _by_execution(page: list[StoredEvent]) -> Iterable[tuple[ExecutionId, list[StoredEvent]]]:
    ordered = sorted(page, key=lambda stored: (stored.execution_id, stored.stream_version))
    for execution, rows in groupby(ordered, key=lambda stored: stored.execution_id):
        yield execution, list(rows)


def _project(
    known: _Known, rows: list[StoredEvent], projected_at: Instant
) -> Iterator[ProjectionRecord]:
    """Records of the rows that ended on this page and of the open rows that changed."""
    finished: list[tuple[Surface, msgspec.Struct]] = []
    accumulator = Accumulator(known.state, lambda surface, row: finished.append((surface, row)))
    for stored in rows:
        recorded = open_stored(stored)
        evolve(accumulator, recorded.envelope, recorded.event)
        if (started := start_key_record(recorded, stored.position)) is not None:
            yield started
    last = rows[-1]
    place = SourcePlace(
        recorded.envelope.scope, last.stream_version, last.position, recorded.envelope.event_id
    )
    meta = write_meta(known.state, place, last.ingest_time, projected_at)
    place = msgspec.structs.replace(place, meta=meta)
    for surface, row in finished:
        record = record_of(surface, row, known.state, place)
        known.saved.pop(record.projection_id, None)
        yield record
    for surface, row in _open(known.state):
        record = record_of(surface, row, known.state, place)
        if known.saved.get(record.projection_id) != record.canonical:
            known.saved[record.projection_id] = record.canonical
            yield record


def _open(state: ExecutionState) -> Iterator[tuple[Surface, msgspec.Struct]]:
    yield "execution", state.execution
    for surface in SURFACES:
        if surface != "execution":
            for row in getattr(state, surface).values():
                yield surface, row
