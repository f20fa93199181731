"""given(events).when(events).then(surface, …): what a history makes true, without a log."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from noetl.domain.events import Event
from noetl.domain.events.envelope import Draft, RecordedEvent, Source
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import EMPTY_STREAM, StoredEvent, StreamHead
from noetl.domain.surfaces import Row, open_rows, plain
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import open_stored, seal

_ID_FIELDS: dict[Surface, tuple[str, ...]] = {
    "execution": (),
    "stages": ("stage_id",),
    "frames": ("frame_id",),
    "commands": ("command_id",),
    "business_objects": ("object", "id"),
    "loops": ("loop_id",),
}


class Placed(NamedTuple):
    """An event and the fields of its envelope that are not made for it."""

    event: Event
    envelope: dict[str, Any]


def at(event: Event, **envelope: Any) -> Placed:
    return Placed(event, envelope)


def stored(
    drafts: Sequence[Draft], source: Source, head: StreamHead = EMPTY_STREAM
) -> list[StoredEvent]:
    """The rows a log would hold if these drafts were the first in it."""
    return [
        StoredEvent(
            sealed.envelope.execution_id,
            sealed.envelope.stream_version,
            position=sealed.envelope.stream_version,
            ingest_time=sealed.envelope.event_time,
            canonical=sealed.canonical,
            checksum=sealed.checksum,
            annotations=canonical_json.encode(sealed.annotations) if sealed.annotations else None,
        )
        for sealed in seal(drafts, head, source)
    ]


def recorded(drafts: Sequence[Draft], execution: ExecutionId) -> list[RecordedEvent]:
    """The drafts as they come back from a log: sealed, stored, verified and opened."""
    return [open_stored(row) for row in stored(drafts, source_of(execution))]


class Story:
    """What is true after some events, and the rows that finished on the way."""

    def __init__(self, execution: ExecutionId) -> None:
        self.execution = execution
        self.events: list[RecordedEvent] = []
        self.finished: dict[Surface, list[Row]] = {surface: [] for surface in SURFACES}
        self._history = History(execution)
        self._accumulator = Accumulator(ExecutionState(), self._keep)

    @property
    def state(self) -> ExecutionState:
        return self._accumulator.state

    def when(self, *happenings: Event | Placed) -> "Story":
        """Let more happen; every event goes through the wire on its way."""
        drafts = [
            self._history.draft(happening.event, **happening.envelope)
            if isinstance(happening, Placed)
            else self._history.draft(happening)
            for happening in happenings
        ]
        head = StreamHead(self.state.stream_version, self.state.execution.last_event_id)
        for row in stored(drafts, source_of(self.execution), head):
            event = open_stored(row)
            self.events.append(event)
            evolve(self._accumulator, event.envelope, event.event)
        return self

    def then(self, surface: Surface, row_id: str = "", **expected: Any) -> "Story":
        """The row has these values, be it open or finished; other fields do not matter."""
        row = self.row(surface, row_id)
        actual = {name: row[name] for name in expected}
        assert actual == expected, f"{surface} {row_id}: {actual} is not {expected}"
        return self

    def row(self, surface: Surface, row_id: str = "") -> Row:
        """The newest row of that id: the open one, else the last that finished."""
        rows = [*open_rows(self.state, surface), *reversed(self.finished[surface])]
        for row in rows:
            if "/".join(str(row.get(field)) for field in _ID_FIELDS[surface]) == row_id:
                return row
        raise AssertionError(f"there is no {row_id or 'row'} in {surface}, only {rows}")

    def is_open(self, surface: Surface, row_id: str) -> bool:
        row = self.row(surface, row_id)
        return row in open_rows(self.state, surface)

    def event_id(self, version: int) -> EventId:
        return self.events[version - 1].envelope.event_id

    def _keep(self, surface: Surface, row: msgspec.Struct) -> None:
        self.finished[surface].append(plain(row))


def given(*happened: Event | Placed) -> Story:
    """A story that begins with these events; every story is about the same execution."""
    return Story(execution_ids(1)[0]).when(*happened)
