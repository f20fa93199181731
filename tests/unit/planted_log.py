"""A log that holds whatever it is given, sound or not, and answers as an SQL store would."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from noetl.domain.events.envelope import Draft
from noetl.domain.log import (
    EMPTY_STREAM,
    Append,
    AppendOutcome,
    Cutoff,
    StoredEvent,
    StreamHead,
)
from noetl.kernel import canonical_json
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.testing.histories import History, command_cycle, execution_ids, source_of
from noetl.wire.codec import seal

FIRST, SECOND = EXECUTIONS = execution_ids(2)
NOW = Instant("2026-01-01T00:00:00.000000Z")
STEP = StepName("load")
EVENTS = 7  # of one command cycle

Rows = list[StoredEvent]


class PlantedLog:
    def __init__(
        self,
        rows: Sequence[StoredEvent],
        heads: dict[ExecutionId, StreamHead],
        owner: Scope = DEFAULT_SCOPE,
    ) -> None:
        self._rows = rows
        self._heads = heads
        self._owner = owner

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        raise AssertionError("whoever verifies a log writes nothing")

    async def is_archived(self, execution: ExecutionId) -> bool:
        return False

    async def head(self, execution: ExecutionId) -> StreamHead:
        return self._heads.get(execution, StreamHead())

    async def scope_of(self, execution: ExecutionId) -> Scope | None:
        return self._owner if execution in self._heads else None

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        stream = [row for row in self._rows if row.execution_id == execution]
        stream.sort(key=lambda row: row.stream_version)
        return [row for row in stream if row.stream_version > after_version][:limit]

    async def tail(
        self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        rows = sorted(self._rows, key=lambda row: row.position)
        return [row for row in rows if row.position > after_position][:limit]

    async def version_at(self, execution: ExecutionId, cutoff: Cutoff) -> int | None:
        raise AssertionError("whoever verifies a log asks for no cutoff")

    async def identity(self) -> str:
        return "planted"

    async def close(self) -> None:
        """Nothing to let go of."""


def planted(execution: ExecutionId, drafts: Sequence[Draft]) -> Rows:
    sealed = seal(drafts, EMPTY_STREAM, source_of(execution))
    return [
        StoredEvent(
            execution, event.envelope.stream_version, 0, NOW, event.canonical, event.checksum
        )
        for event in sealed
    ]


def two_streams() -> Rows:
    """Two executions in turn: every event of the first is followed by one of the second."""
    streams = [planted(name, list(command_cycle(History(name), STEP))) for name in EXECUTIONS]
    rows = [row for pair in zip(*streams, strict=True) for row in pair]
    return [msgspec.structs.replace(row, position=place) for place, row in enumerate(rows, start=1)]


def heads_of(rows: Rows) -> dict[ExecutionId, StreamHead]:
    return {
        row.execution_id: StreamHead(row.stream_version, fields(row)["event_id"]) for row in rows
    }


def fields(row: StoredEvent) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(row.canonical)
    return plain


def rewritten(row: StoredEvent, **changes: Any) -> StoredEvent:
    """The event with other fields (None removes one) and the checksum that goes with them."""
    kept = {name: value for name, value in (fields(row) | changes).items() if value is not None}
    return with_bytes(row, canonical_json.encode(kept))


def with_bytes(row: StoredEvent, canonical: bytes) -> StoredEvent:
    return msgspec.structs.replace(
        row, canonical=canonical, checksum=canonical_json.sha256_hex(canonical)
    )


def on(version: int, change: Callable[[StoredEvent], StoredEvent | None]) -> Callable[[Rows], Rows]:
    """Change or drop one event of the first stream."""

    def tamper(rows: Rows) -> Rows:
        changed = [
            change(row) if (row.execution_id, row.stream_version) == (FIRST, version) else row
            for row in rows
        ]
        return [row for row in changed if row is not None]

    return tamper


def replacing(**changes: Any) -> Callable[[StoredEvent], StoredEvent]:
    return lambda row: msgspec.structs.replace(row, **changes)


def rewriting(**changes: Any) -> Callable[[StoredEvent], StoredEvent]:
    return lambda row: rewritten(row, **changes)
