"""What people ask about executions: which there are, how far they came, what came out."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from noetl.domain.events import ExecutionCancelled, PlaybookCompleted, PlaybookFailed
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Failure, Result
from noetl.domain.execution.rows import TERMINAL, ExecutionRow, LoopRow
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import AtEvent
from noetl.domain.projection import QUERY_RECORDS_MAX, ProjectionQuery
from noetl.kernel.errors import ExecutionNotFound, RequestInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant, seconds_between
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.results.store import ResultStore
from noetl.runtime.effect_entries import EffectEntry
from noetl.runtime.effects import Ledger
from noetl.runtime.loop_progress import LoopProgress, loops_told
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.runtime.variables import Writers, Written
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from noetl.templates.reference import Reference
from noetl.wire.codec import open_stored

FOLDED_EVENTS_MAX = 1_000
"""A log up to this length is folded rather than told from a read model that lags behind it."""

LOOPS_SHOWN_MAX = 100

_EXECUTION = msgspec.json.Decoder(ExecutionRow)
_LOOP = msgspec.json.Decoder(LoopRow)


class ExecutionView(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    path: str | None = None
    version: int | None = None
    status: str
    started_at: Instant | None = None
    ended_at: Instant | None = None
    duration_seconds: float | None = None  # None: it has not ended
    current_step: StepName | None = None
    event_count: int = 0
    parent_execution_id: ExecutionId | None = None
    error: str | None = None
    error_kind: str | None = None
    loop_progress: list[LoopProgress] = []  # told by `show` alone


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended, or how far it came: `result` is a plain value, whatever its size was."""

    execution_id: ExecutionId
    status: str
    step: StepName | None = None  # the step it ended in, or that failed
    result: Any = None
    error: Failure | None = None
    events: int = 0
    duration_seconds: float | None = None


class _Told(msgspec.Struct, frozen=True):
    row: ExecutionRow
    loops: list[LoopRow]


class Executions:
    def __init__(self, log: EventLog, projections: ProjectionStore, results: ResultStore) -> None:
        self._log = log
        self._projections = projections
        self._results = results
        self._replay = Replay(log)

    async def show(self, scope: Scope, execution: ExecutionId) -> ExecutionView:
        told = await self._told(scope, execution, FOLDED_EVENTS_MAX)
        return _view(told.row, await loops_told(self._log, execution, told.loops))

    async def state(self, scope: Scope, execution: ExecutionId) -> ExecutionState:
        """Everything that is open, folded from the log."""
        request = ReplayRequest(scope=scope, execution_id=execution)
        return (await self._replay.state(request)).state

    async def outcome(self, scope: Scope, execution: ExecutionId) -> Outcome:
        """As the log has it: an end that is recorded is told, however far read models are."""
        row = (await self._told(scope, execution, None)).row
        step, result, error = await self._end(execution, row)
        return Outcome(
            execution_id=execution,
            status=row.status,
            step=step or row.last_node_name,
            result=None if result is None else await self._value(scope, result),
            error=error,
            events=row.event_count,
            duration_seconds=_duration(row),
        )

    async def events(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        after_version: int = 0,
        limit: int = 100,
        event_type: str | None = None,
    ) -> list[RecordedEvent]:
        """The next page of its log; with a type, the next events of that type."""
        _checked(limit, PAGE_EVENTS_MAX)
        await self._check_scope(scope, execution)
        found: list[RecordedEvent] = []
        async for recorded in self._opened(execution, after_version, _page(limit, event_type)):
            if event_type in (None, recorded.envelope.event_type):
                found.append(recorded)
            if len(found) == limit:
                break
        return found

    async def effects(self, scope: Scope, execution: ExecutionId) -> list[EffectEntry]:
        await self._check_scope(scope, execution)
        ledger = Ledger()
        async for recorded in self._opened(execution, 0, PAGE_EVENTS_MAX):
            ledger.add(recorded)
        return ledger.entries()

    async def writers(self, scope: Scope, execution: ExecutionId) -> dict[str, Written]:
        """Who wrote each variable last, and when. The whole log is read for it."""
        await self._check_scope(scope, execution)
        writers = Writers()
        async for recorded in self._opened(execution, 0, PAGE_EVENTS_MAX):
            writers.add(recorded)
        return writers.newest

    async def _told(self, scope: Scope, execution: ExecutionId, folded_max: int | None) -> _Told:
        """From the read model when it is as new as the log, or the log too long to fold."""
        await self._check_scope(scope, execution)
        head = await self._log.head(execution)
        record = await self._projections.load(scope, "execution", execution)
        is_long = folded_max is not None and head.version > folded_max
        if record is not None and (record.version >= head.version or is_long):
            return _Told(_EXECUTION.decode(record.canonical), await self._loops(scope, execution))
        loops: list[LoopRow] = []

        def keep(_surface: str, row: msgspec.Struct) -> None:
            if isinstance(row, LoopRow):
                loops.append(row)

        request = ReplayRequest(scope=scope, execution_id=execution)
        state = (await self._replay.state(request, keep)).state
        return _Told(state.execution, [*loops, *state.loops.values()])

    async def _loops(self, scope: Scope, execution: ExecutionId) -> list[LoopRow]:
        query = ProjectionQuery(
            scope=scope,
            projection_type="loop",
            execution_id=execution,
            limit=LOOPS_SHOWN_MAX,
        )
        return [_LOOP.decode(each.canonical) for each in await self._projections.query(query)]

    async def _end(
        self, execution: ExecutionId, row: ExecutionRow
    ) -> tuple[StepName | None, Result | None, Failure | None]:
        if row.status not in TERMINAL or row.terminal_event_id is None:
            return None, None, None
        version = await self._log.version_at(execution, AtEvent(row.terminal_event_id)) or 1
        (stored,) = await self._log.read(execution, after_version=version - 1, limit=1)
        match open_stored(stored).event:
            case PlaybookCompleted(step=step, result=result):
                return step, result, None
            case PlaybookFailed(step=step, error=error):
                return step, None, error
            case ExecutionCancelled(reason=reason):
                message = reason or "the execution was cancelled"
                return None, None, Failure(kind="cancelled", message=message)
            case _:
                return None, None, None

    async def _value(self, scope: Scope, result: Result) -> Any:
        reference = result.reference
        if reference is None:
            return _plain(value_of(result))
        content = await self._results.content(scope, reference.uri, reference)
        return _plain(value_of(result, {reference.uri: content}))

    async def _opened(
        self, execution: ExecutionId, after_version: int, page_size: int
    ) -> AsyncIterator[RecordedEvent]:
        while page := await self._log.read(execution, after_version=after_version, limit=page_size):
            for stored in page:
                yield open_stored(stored)
            after_version = page[-1].stream_version

    async def _check_scope(self, scope: Scope, execution: ExecutionId) -> None:
        """Another tenant's execution is not found, so nobody learns that it exists."""
        if await self._log.scope_of(execution) != scope:
            raise ExecutionNotFound(execution)

    # The last of the class: above it the word means the type.
    async def list(
        self,
        scope: Scope,
        *,
        status: str | None = None,
        path: str | None = None,
        before: str = "",
        limit: int = 100,
    ) -> list[ExecutionView]:
        """Newest first; `before` is the last id of the page before. A moment behind the log."""
        asked = {"status": status, "path": path}
        query = ProjectionQuery(
            scope=scope,
            projection_type="execution",
            where={name: value for name, value in asked.items() if value is not None},
            after_id=before,
            limit=_checked(limit, QUERY_RECORDS_MAX),
            newest_first=True,
        )
        records = await self._projections.query(query)
        return [_view(_EXECUTION.decode(record.canonical)) for record in records]


def _view(row: ExecutionRow, loops: list[LoopProgress] | None = None) -> ExecutionView:
    return ExecutionView(
        execution_id=row.execution_id,
        path=row.path,
        version=row.playbook_version,
        status=row.status,
        started_at=row.started_at,
        ended_at=row.ended_at,
        duration_seconds=_duration(row),
        current_step=row.last_node_name,
        event_count=row.event_count,
        parent_execution_id=row.parent_execution_id,
        error=row.error,
        error_kind=row.error_kind,
        loop_progress=loops or [],
    )


def _duration(row: ExecutionRow) -> float | None:
    if row.started_at is None or row.ended_at is None:
        return None
    return seconds_between(row.started_at, row.ended_at)


def _plain(value: Any) -> Any:
    """A reference that is nobody's payload is told by its address."""
    value = plain_result(value)
    return {"reference": value.payload} if isinstance(value, Reference) else value


def _page(limit: int, event_type: str | None) -> int:
    return limit if event_type is None else PAGE_EVENTS_MAX


def _checked(limit: int, limit_max: int) -> int:
    if not 1 <= limit <= limit_max:
        raise RequestInvalid(f"limit is {limit}; ask for 1 to {limit_max}")
    return limit
