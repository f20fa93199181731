"""A result by its name alone: the events of its execution know what proves it, or hold it."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from noetl.domain.events import CallDone, FrameCommitted
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import ResultName, parse_results
from noetl.domain.payload import is_payload_uri
from noetl.kernel.errors import ExecutionNotFound, PayloadError
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.results.dataset import ROWS, frame_content
from noetl.results.store import ResultStore
from noetl.results.within import named_within
from noetl.runtime.payload_verification import payloads_named_by
from noetl.runtime.result_index import ResultEntry, ResultIndex
from noetl.templates.recorded import LOOP, TASKS, VALUE
from noetl.wire.codec import open_stored

HOLDERS_MAX = 10_000
"""Objects of one visit of a step that are looked into for a name that no event has."""


class FoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """In the object that `reference` names, or in the event itself."""

    uri: str
    recorded: RecordedEvent  # the first event that tells of it
    reference: ResultReference | None = None
    content: dict[str, Any] = {}  # where there is no reference
    task: str | None = None  # it is this part of its step's result, which is what was found


async def find_result(
    log: EventLog, results: ResultStore, scope: Scope, uri: str
) -> FoundResult | None:
    """Raises NameInvalid, ExecutionNotFound, and what reading an object that names others does."""
    search = _Search(uri)
    execution = search.name.execution_id
    if await log.scope_of(execution) != scope:
        raise ExecutionNotFound(execution)
    async for recorded in _events(log, execution):
        found = search.add(recorded)
        if found is not None:
            is_inside = found.task is not None and found.reference is not None
            return await _table_of(search, results, scope, found) if is_inside else found
    return search.open_call() or await search.within(results, scope)


async def _table_of(
    search: "_Search", results: ResultStore, scope: Scope, found: FoundResult
) -> FoundResult:
    """The object of the task's own, if its table was stored apart from the result of the step."""
    try:
        return await search.within(results, scope) or found
    except PayloadError:
        return found  # whoever reads it looks for other copies


async def value_of(found: FoundResult, results: ResultStore, scope: Scope) -> Any:
    """What the result stands for, checked on the way. Raises what `ResultStore.content` does."""
    content: Any = found.content
    if found.reference is not None:
        content = await results.content(scope, found.reference.uri, found.reference)
    if found.task is not None:
        return content.get(TASKS, {}).get(found.task)
    return bare(content)


def bare(content: Any) -> Any:
    """Without the one key under which a result of its kind stands; a collection has none."""
    if isinstance(content, dict):
        for kind in (VALUE, TASKS, LOOP, ROWS):
            if kind in content:
                return content[kind]
    return content


class _Search:
    def __init__(self, uri: str) -> None:
        self.name = parse_results(uri)
        self._uris = {uri, self.name.uri}
        self._index = ResultIndex()
        self._calls: dict[EventId, RecordedEvent] = {}  # whose results are told of later
        self._holders: list[FoundResult] = []  # objects of the same visit, which may name it

    def add(self, recorded: RecordedEvent) -> FoundResult | None:
        for reference in payloads_named_by(recorded):
            if reference.uri in self._uris:
                return FoundResult(uri=reference.uri, recorded=recorded, reference=reference)
            if self._may_hold(reference) and len(self._holders) < HOLDERS_MAX:
                holder = FoundResult(uri=reference.uri, recorded=recorded, reference=reference)
                self._holders.append(holder)
        if self._may_be_asked_for(recorded.event):
            self._calls[recorded.envelope.event_id] = recorded
        for entry in self._index.add(recorded):
            if entry.uri in self._uris:
                return self._found(entry, recorded)
        return None

    def open_call(self) -> FoundResult | None:
        """Of a command that has not ended."""
        for entry in self._index.open_calls():
            if entry.uri in self._uris and entry.tier != "part":
                return self._found(entry, self._calls[entry.event_id])
        return None

    async def within(self, results: ResultStore, scope: Scope) -> FoundResult | None:
        """A table of a pipeline, or a part of a table: objects name it, and no event does."""
        waiting = deque((each, each.reference) for each in self._holders)
        seen: set[str] = set()
        trouble: PayloadError | None = None  # what is lost or damaged may have named it
        while waiting:
            holder, reference = waiting.popleft()
            if reference is None or reference.uri in seen:
                continue
            if reference.uri in self._uris:
                return msgspec.structs.replace(holder, uri=reference.uri, reference=reference)
            seen.add(reference.uri)
            try:
                named = await named_within(results, scope, reference)
            except PayloadError as error:
                trouble = trouble or error
            else:
                waiting.extend((holder, each) for each in named)
        if trouble is not None:
            raise trouble
        return None

    def _may_hold(self, reference: ResultReference) -> bool:
        if is_payload_uri(reference.uri):
            return False
        holder, name = parse_results(reference.uri), self.name
        return (holder.scope, holder.step, holder.visit) == (name.scope, name.step, name.visit)

    def _may_be_asked_for(self, event: object) -> bool:
        name = self.name
        return (
            isinstance(event, CallDone)
            and isinstance(name, ResultName)
            and (event.task, event.step, event.visit) == (name.task, name.step, name.visit)
        )

    def _found(self, entry: ResultEntry, recorded: RecordedEvent) -> FoundResult:
        is_part = entry.tier == "part"  # of its step's result, also where its call was recorded
        recorded = recorded if is_part else self._calls.get(entry.event_id, recorded)
        reference, content = _recorded_result(recorded.event)
        return FoundResult(
            uri=entry.uri,
            recorded=recorded,
            reference=reference,
            content=content,
            task=entry.task if is_part else None,
        )


def _recorded_result(event: object) -> tuple[ResultReference | None, dict[str, Any]]:
    if isinstance(event, FrameCommitted):
        return event.output_ref, frame_content(event.outcomes)
    result = getattr(event, "result", None)
    if not isinstance(result, Result):
        return None, {}
    return result.reference, result.context if result.reference is None else {}


async def _events(log: EventLog, execution: ExecutionId) -> AsyncIterator[RecordedEvent]:
    read = 0
    while page := await log.read(execution, after_version=read, limit=PAGE_EVENTS_MAX):
        for stored in page:
            yield open_stored(stored)
        read = page[-1].stream_version
