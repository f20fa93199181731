"""Where a step's result came from: its tasks, the steps it was entered from, back to the start.

A fold over the execution's log in two passes. The first keeps only which visit led to which, so
a log of any length can be walked; the second looks closer at the visits that are asked for.
Visits tell the rounds of a back edge apart, so a walk never comes to the same place twice.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable

import msgspec

from noetl.domain.events import (
    ExecutionRetried,
    PlaybookInitialized,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.errors import ExecutionNotFound, RequestInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.runtime.result_index import ResultEntry, ResultIndex
from noetl.runtime.trace_visits import Place, TracedVisit, VisitTales
from noetl.wire.codec import open_stored

VISITS_SHOWN_MAX = 1_000
RESULTS_SHOWN_MAX = 1_000


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True):
    scope: Scope
    execution_id: ExecutionId
    step: StepName
    visit: int | None = None  # None: the newest
    after: int = 0  # visits of the lineage to pass over
    limit: int = 100


class StepTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of a visit, itself first, then nearest first."""

    execution_id: ExecutionId
    step: StepName
    visit: int
    visits: list[TracedVisit]
    total: int  # visits in the lineage, shown here or not
    next_after: int | None = None  # None: these are the last
    parent_execution_id: ExecutionId | None = None  # whose step asked for this execution
    parent_step: StepName | None = None


class ResultsPage(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    results: list[ResultEntry]
    next_after: int | None = None


class Arcs:
    """Which visit each visit was entered from."""

    def __init__(self) -> None:
        self.parents: dict[Place, tuple[Place, ...]] = {}
        self.newest: dict[StepName, int] = {}
        self.began: PlaybookInitialized | None = None
        self._tokens: dict[StepName, list[Place]] = {}

    def add(self, recorded: RecordedEvent) -> None:
        match recorded.event:
            case PlaybookInitialized() as began:
                self.began = began
            case StepEntered(step=step, visit=visit, arrived_from=sources):
                self._arrive(Place(step, visit), sources)
            case StepExited(step=step, visit=visit, arcs=arcs):
                self._leave(Place(step, visit), arcs)
            case StepSkipped(step=step, visit=visit, arcs=arcs, arrived_from=sources):
                self._arrive(Place(step, visit), sources or self._waiting(step))
                self._leave(Place(step, visit), arcs)
            case ExecutionRetried(step=step, visit=visit) if self.newest.get(step) != visit:
                self._tokens.setdefault(step, [Place(step, visit)])

    def lineage(self, start: Place) -> list[tuple[Place, int]]:
        """All that led to the visit, each once, with how many arcs lie between."""
        distances = {start: 0}
        waiting = deque([start])
        while waiting:
            place = waiting.popleft()
            for parent in self.parents.get(place, ()):
                if parent not in distances:
                    distances[parent] = distances[place] + 1
                    waiting.append(parent)
        return list(distances.items())

    def _waiting(self, step: StepName) -> tuple[StepName, ...]:
        return tuple(place.step for place in self._tokens.get(step, ()))

    def _arrive(self, place: Place, sources: Iterable[StepName]) -> None:
        if place in self.parents:
            return
        taken = [self._taken(place.step, source) for source in sources]
        parents = [each for each in taken if each is not None and each.step != place.step]
        again = [each for each in taken if each is not None and each.step == place.step]
        for each in again:
            is_arc = each in self.parents and each.visit < place.visit
            # A person's retry enters a step from itself: what led there leads here too.
            parents += [each] if is_arc else self._before(place)
        self.parents[place] = tuple(dict.fromkeys(parents))
        self.newest[place.step] = max(place.visit, self.newest.get(place.step, 0))

    def _before(self, place: Place) -> tuple[Place, ...]:
        return self.parents.get(Place(place.step, place.visit - 1), ())

    def _taken(self, step: StepName, source: StepName) -> Place | None:
        tokens = self._tokens.get(step, [])
        found = next((token for token in tokens if token.step == source), None)
        if found is not None:
            tokens.remove(found)
            if not tokens:
                del self._tokens[step]
        return found

    def _leave(self, place: Place, arcs: Iterable[StepName]) -> None:
        for target in arcs:
            self._tokens.setdefault(target, []).append(place)


class Traces:
    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def trace(self, asked: TraceRequest) -> StepTrace:
        _check_limit(asked.limit, VISITS_SHOWN_MAX)
        arcs = Arcs()
        async for recorded in self._events(asked.scope, asked.execution_id):
            arcs.add(recorded)
        start = _start(asked, arcs)
        lineage = arcs.lineage(start)
        page = lineage[asked.after : asked.after + asked.limit]
        parents = {parent for place, _ in page for parent in arcs.parents.get(place, ())}
        tales = VisitTales((place for place, _ in page), parents)
        async for recorded in self._events(asked.scope, asked.execution_id):
            tales.add(recorded)
        end = asked.after + len(page)
        began = arcs.began
        return StepTrace(
            execution_id=asked.execution_id,
            step=start.step,
            visit=start.visit,
            visits=[
                tales.visit(place, distance, arcs.parents.get(place, ()))
                for place, distance in page
            ],
            total=len(lineage),
            next_after=end if end < len(lineage) else None,
            parent_execution_id=None if began is None else began.parent_execution_id,
            parent_step=None if began is None else began.parent_step,
        )

    async def results(
        self, scope: Scope, execution: ExecutionId, *, after: int = 0, limit: int = 100
    ) -> ResultsPage:
        """Results in the order they were recorded; `after` is how many to pass over."""
        _check_limit(limit, RESULTS_SHOWN_MAX)
        index, passed = ResultIndex(), 0
        found: list[ResultEntry] = []
        async for recorded in self._events(scope, execution):
            entries = index.add(recorded)
            skipped = min(after - passed, len(entries))
            passed += skipped
            found += entries[skipped:]
            if len(found) > limit:
                break
        else:
            found += index.open_calls()[max(0, after - passed) :]
        more = after + limit if len(found) > limit else None
        return ResultsPage(execution_id=execution, results=found[:limit], next_after=more)

    async def _events(self, scope: Scope, execution: ExecutionId) -> AsyncIterator[RecordedEvent]:
        """Another tenant's execution is not found, so nobody learns that it exists."""
        if await self._log.scope_of(execution) != scope:
            raise ExecutionNotFound(execution)
        read = 0
        while page := await self._log.read(execution, after_version=read, limit=PAGE_EVENTS_MAX):
            for stored in page:
                yield open_stored(stored)
            read = page[-1].stream_version


def _start(asked: TraceRequest, arcs: Arcs) -> Place:
    newest = arcs.newest.get(asked.step)
    if newest is None:
        seen = ", ".join(list(arcs.newest)[:10]) or "none"
        raise RequestInvalid(f"no step {asked.step!r} was entered; steps so far: {seen}")
    place = Place(asked.step, asked.visit or newest)
    if place not in arcs.parents:
        message = f"step {asked.step!r} has no visit {asked.visit}; its newest is {newest}"
        raise RequestInvalid(message)
    return place


def _check_limit(limit: int, limit_max: int) -> None:
    if not 1 <= limit <= limit_max:
        raise RequestInvalid(f"limit is {limit}; ask for 1 to {limit_max}")
