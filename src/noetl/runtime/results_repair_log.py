"""Lost bytes that follow from the log: manifests, collections, and results that stand in others."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any

from noetl.decider import loops
from noetl.decider.answers import Incomplete, StoreFirst
from noetl.decider.plan import plan_of
from noetl.decider.view import View
from noetl.domain.events import (
    CallDone,
    CommandCompleted,
    CommandFailed,
    LoopDone,
    LoopStarted,
    StageClosed,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Result
from noetl.domain.execution.state import ExecutionState, LoopWork
from noetl.domain.log import AtEvent
from noetl.domain.naming.result_name import ResultName, parse_results
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.pipeline.payloads import references_of
from noetl.ports.event_log import EventLog
from noetl.results.dataset import manifest_bytes
from noetl.results.store import ResultStore
from noetl.results.tiers import INLINE_BYTES_MAX, encode
from noetl.runtime.gathering import collection_bytes, manifest_of
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.runtime.results_repair_copies import Found
from noetl.runtime.results_repair_objects import Named
from noetl.templates.recorded import ORDER, TASKS, VALUE
from noetl.templates.render import Needs
from noetl.wire.codec import open_stored

LOG = "log"
ASKED_AGAIN_MAX = 100
"""Payloads that the items of a loop may be made of, one after the other."""


class History:
    """The log of an execution, as repair reads it."""

    def __init__(self, log: EventLog, replay: Replay, playbooks: Playbooks) -> None:
        self.log = log
        self.replay = replay
        self.playbooks = playbooks

    async def before(self, recorded: RecordedEvent) -> ExecutionState:
        """The state that the event found."""
        previous = recorded.envelope.prev_event_id
        if previous is None:
            return ExecutionState()
        return await self.at(recorded, previous)

    async def at(self, recorded: RecordedEvent, event_id: Any) -> ExecutionState:
        request = ReplayRequest(
            scope=recorded.envelope.scope,
            execution_id=recorded.envelope.execution_id,
            cutoff=AtEvent(event_id),
        )
        return (await self.replay.state(request)).state

    async def after(self, recorded: RecordedEvent) -> AsyncIterator[RecordedEvent]:
        execution: ExecutionId = recorded.envelope.execution_id
        version = recorded.envelope.stream_version
        while page := await self.log.read(execution, after_version=version):
            for stored in page:
                yield open_stored(stored)
            version = page[-1].stream_version


def contents_as_bytes(content: dict[str, Any]) -> list[bytes]:
    """As it is encoded when it is large, and when its author wants it outside of the event."""
    large = encode(content, INLINE_BYTES_MAX)
    if large.tier != "inline":  # it is outside of the event anyway, in the same bytes
        return [large.data]
    return list(dict.fromkeys([large.data, encode(content, 0).data]))


class FromTheLog:
    """Everything here is computed; nothing is called."""

    def __init__(self, history: History, results: ResultStore) -> None:
        self._history = history
        self._results = results

    async def __call__(self, named: Named, /) -> AsyncGenerator[Found]:
        # What stands inside another object: the event tells of that one.
        match named.recorded.event if named.within is None else None:
            case LoopDone(loop_id=loop_id):
                state = await self._history.before(named.recorded)
                for found in _manifest(state.loop_work.get(loop_id)):
                    yield found
            case StageClosed():
                state = await self._history.before(named.recorded)
                for found in _manifest(_work_of_stage(state, named.recorded)):
                    yield found
            case LoopStarted() as started:
                yield await self._collection(named, started)
            case CallDone(task=str(task)):
                async for found in self._part_of_step(named, task):
                    yield found
            case _:
                return

    async def _collection(self, named: Named, started: LoopStarted) -> Found:
        """The items once more: `in:` gives the same at every asking, and so do payloads."""
        state = await self._history.before(named.recorded)
        digest = state.execution.playbook_digest or ""
        try:
            playbook = await self._history.playbooks.load(named.scope, digest)
            step = playbook.steps[started.step]
            view = View(plan=plan_of(playbook, digest), state=state)
            for _ in range(ASKED_AGAIN_MAX):
                try:
                    loops.opened(view, step, started.visit, started.attempt)
                except Incomplete as incomplete:
                    match incomplete.missing:
                        case StoreFirst(items=items):
                            return Found(LOG, collection_bytes(items))
                        case Needs() as needs:
                            view = await self._fetched(view, needs, named)
                            continue
                break
        except (NoETLError, KeyError) as error:
            return Found(LOG, reason=f"its items cannot be found again: {error}")
        return Found(LOG, reason="its items are another collection now")

    async def _fetched(self, view: View, needs: Needs, named: Named) -> View:
        known = references_of(view.state.results)
        found = dict(view.fetched)
        for uri in sorted({need.payload for need in needs.needs}):
            found[uri] = await self._results.content(named.scope, uri, known.get(uri))
        return replace(view, fetched=found)

    async def _part_of_step(self, named: Named, task: str) -> AsyncIterator[Found]:
        """What a task gave stands in its pipeline's result, if its last run is meant."""
        name = parse_results(named.reference.uri)
        if not isinstance(name, ResultName) or name.task is None:
            return
        command = named.recorded.envelope.command_id
        async for later in self._history.after(named.recorded):
            event = later.event
            if not isinstance(event, CommandCompleted | CommandFailed):
                continue
            if later.envelope.command_id != command or event.result is None:
                continue
            try:
                content = await self._content(named, event.result)
            except NoETLError as error:
                yield Found("step", reason=f"the step's own result cannot be read: {error}")
                return
            if ORDER in content and task in content[TASKS]:
                for data in contents_as_bytes({VALUE: content[TASKS][task]}):
                    yield Found("step", data)
            return

    async def _content(self, named: Named, result: Result) -> dict[str, Any]:
        if result.reference is None:
            return result.context
        reference = result.reference
        content: dict[str, Any] = await self._results.content(named.scope, reference.uri, reference)
        return content


def _manifest(work: LoopWork | None) -> list[Found]:
    return [] if work is None else [Found(LOG, manifest_bytes(manifest_of(work)))]


def _work_of_stage(state: ExecutionState, recorded: RecordedEvent) -> LoopWork | None:
    stage_id = recorded.envelope.stage_id
    stage = None if stage_id is None else state.stages.get(stage_id)
    loop_id = None if stage is None else stage.loop_id
    return None if loop_id is None else state.loop_work.get(loop_id)
