"""tail -> fold -> save with position. The only writer of read models.

At least once: a page that was folded and not saved is folded again, to the same records.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import AtPosition, StoredEvent
from noetl.domain.projection import Cursor, ProjectionRecord
from noetl.domain.read_models import SourcePlace, record_of
from noetl.kernel.errors import LogReplaced
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.ports.snapshot_store import SnapshotStore
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.wire.codec import open_stored

CONSUMER = "projector"
STATES_MAX = 1_000
"""Executions whose state is kept at hand; the others are replayed when an event comes."""


class _Known(msgspec.Struct):
    """A state at hand, and the bytes of its open rows as they were last saved."""

    state: ExecutionState
    saved: dict[str, bytes]


class Projector:
    def __init__(
        self, log: EventLog, projections: ProjectionStore, snapshots: SnapshotStore | None = None
    ) -> None:
        self._log = log
        self._projections = projections
        self._replay = Replay(log, snapshots)
        self._known: OrderedDict[ExecutionId, _Known] = OrderedDict()
        self._cursor: Cursor | None = None

    async def advance(self, limit: int = PAGE_EVENTS_MAX) -> int:
        """Project the next page of the log; returns how many events it had, 0 at the end."""
        cursor = await self._load_cursor()
        # States that run ahead of what is saved must not be used again: until the page is saved
        # they are out of reach, whatever goes wrong on the way.
        known, self._known = self._known, OrderedDict()
        if cursor != self._cursor:
            known.clear()  # somebody cleared or moved the read models
        page = await self._log.tail(after_position=cursor.position, limit=limit)
        records: list[ProjectionRecord] = []
        for execution, rows in _by_execution(page):
            if execution not in known:
                is_new = rows[0].stream_version == 1
                before = ExecutionState() if is_new else await self._state_at(execution, cursor)
                known[execution] = _Known(before, {})
            known.move_to_end(execution)
            records += _project(known[execution], rows)
        if page:
            cursor = msgspec.structs.replace(cursor, position=page[-1].position)
            await self._projections.save(records, cursor)
        while len(known) > STATES_MAX:
            known.popitem(last=False)
        self._known, self._cursor = known, cursor
        return len(page)

    async def _load_cursor(self) -> Cursor:
        identity = await self._log.identity()
        cursor = await self._projections.cursor(CONSUMER)
        if cursor is None:
            return Cursor(consumer=CONSUMER, log_identity=identity, position=0)
        if cursor.log_identity != identity:
            raise LogReplaced(CONSUMER, known=cursor.log_identity, actual=identity)
        return cursor

    async def _state_at(self, execution: ExecutionId, cursor: Cursor) -> ExecutionState:
        """The state as the read models have it: at the cursor, not at the head of the log."""
        scope = await self._log.scope_of(execution)
        if scope is None or cursor.position == 0:
            return ExecutionState()
        at_cursor = AtPosition(cursor.position)
        request = ReplayRequest(scope=scope, execution_id=execution, cutoff=at_cursor)
        return (await self._replay.state(request)).state


def _by_execution(page: list[StoredEvent]) -> Iterable[tuple[ExecutionId, list[StoredEvent]]]:
    ordered = sorted(page, key=lambda stored: (stored.execution_id, stored.stream_version))
    for execution, rows in groupby(ordered, key=lambda stored: stored.execution_id):
        yield execution, list(rows)


def _project(known: _Known, rows: list[StoredEvent]) -> Iterator[ProjectionRecord]:
    """Records of the rows that ended on this page and of the open rows that changed."""
    finished: list[tuple[Surface, msgspec.Struct]] = []
    accumulator = Accumulator(known.state, lambda surface, row: finished.append((surface, row)))
    for stored in rows:
        recorded = open_stored(stored)
        evolve(accumulator, recorded.envelope, recorded.event)
    last = rows[-1]
    place = SourcePlace(
        recorded.envelope.scope, last.stream_version, last.position, recorded.envelope.event_id
    )
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
