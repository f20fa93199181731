"""A result by its name alone: the events of its execution know what proves it, or hold it."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from noetl.domain.events import CallDone, FrameCommitted
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import ResultName, parse_results
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.results.dataset import ROWS, frame_content
from noetl.results.store import ResultStore
from noetl.runtime.payload_verification import payloads_named_by
from noetl.runtime.result_index import ResultEntry, ResultIndex
from noetl.templates.recorded import LOOP, TASKS, VALUE
from noetl.wire.codec import open_stored


class FoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """In the object that `reference` names, or in the event itself."""

    uri: str
    recorded: RecordedEvent  # the first event that tells of it
    reference: ResultReference | None = None
    content: dict[str, Any] = {}  # where there is no reference
    task: str | None = None  # it is this part of its step's result, which is what was found


async def find_result(log: EventLog, scope: Scope, uri: str) -> FoundResult | None:
    """Raises NameInvalid, ExecutionNotFound."""
    search = _Search(uri)
    execution = search.name.execution_id
    if await log.scope_of(execution) != scope:
        raise ExecutionNotFound(execution)
    async for recorded in _events(log, execution):
        found = search.add(recorded)
        if found is not None:
            return found
    return search.open_call()


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

    def add(self, recorded: RecordedEvent) -> FoundResult | None:
        for reference in payloads_named_by(recorded):
            if reference.uri in self._uris:
                return FoundResult(uri=reference.uri, recorded=recorded, reference=reference)
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
