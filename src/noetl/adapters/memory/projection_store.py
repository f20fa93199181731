"""ProjectionStore in dicts: the reference adapter. Forgets when it dies."""

from collections.abc import Sequence

from noetl.domain.projection import (
    Cursor,
    ProjectionKey,
    ProjectionQuery,
    ProjectionRecord,
    check_record,
    key_of,
)
from noetl.kernel.errors import LogReplaced
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope


class MemoryProjectionStore:
    def __init__(self) -> None:
        self._records: dict[ProjectionKey, ProjectionRecord] = {}
        self._cursors: dict[str, Cursor] = {}

    async def save(self, records: Sequence[ProjectionRecord], cursor: Cursor | None = None) -> int:
        newer: dict[ProjectionKey, ProjectionRecord] = {}
        stale = 0
        for record in records:
            check_record(record)
            key = key_of(record)
            known = newer.get(key) or self._records.get(key)
            if known is not None and known.version >= record.version:
                stale += 1
            else:
                newer[key] = record
        if cursor is not None:
            self._move(cursor)
        self._records |= newer  # last, because nothing after it may fail
        return stale

    async def load(
        self, scope: Scope, projection_type: str, projection_id: str
    ) -> ProjectionRecord | None:
        return self._records.get(ProjectionKey(scope, projection_type, projection_id))

    async def query(self, query: ProjectionQuery) -> list[ProjectionRecord]:
        found = [record for record in self._records.values() if _matches(record, query)]
        found.sort(key=lambda record: record.projection_id, reverse=query.newest_first)
        return found[: query.limit]

    async def cursor(self, consumer: str) -> Cursor | None:
        return self._cursors.get(consumer)

    async def remove(self, scope: Scope, execution: ExecutionId) -> int:
        removed = [
            key
            for key, record in self._records.items()
            if (record.scope, record.execution_id) == (scope, execution)
        ]
        for key in removed:
            del self._records[key]
        return len(removed)

    async def clear(self) -> None:
        self._records.clear()
        self._cursors.clear()

    async def close(self) -> None:
        """Nothing to let go of."""

    def _move(self, cursor: Cursor) -> None:
        known = self._cursors.get(cursor.consumer, cursor)
        if known.log_identity != cursor.log_identity:
            raise LogReplaced(cursor.consumer, known=known.log_identity, actual=cursor.log_identity)
        self._cursors[cursor.consumer] = max(known, cursor, key=lambda each: each.position)


def _matches(record: ProjectionRecord, query: ProjectionQuery) -> bool:
    if (record.scope, record.projection_type) != (query.scope, query.projection_type):
        return False
    if query.execution_id not in (None, record.execution_id):
        return False
    if not _is_after(record, query):
        return False
    state = record.state if query.where else {}
    return all(state.get(name) == value for name, value in query.where.items())


def _is_after(record: ProjectionRecord, query: ProjectionQuery) -> bool:
    if query.newest_first:
        return not query.after_id or record.projection_id < query.after_id
    return record.projection_id > query.after_id
