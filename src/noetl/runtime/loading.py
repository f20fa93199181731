"""An execution in memory again: the newest state that was frozen, and what the log has after it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from noetl.decider.plan import plan_of
from noetl.decider.view import facts_of
from noetl.domain.events import (
    CommandClaimed,
    CommandHeartbeat,
    CommandIssued,
    CommandReleased,
    CommandStarted,
    FrameAbandoned,
    FrameDispatched,
    FrameHeartbeat,
    FrameStarted,
    LoopStarted,
    PlaybookInitialized,
    StageOpened,
    StepEntered,
)
from noetl.domain.events.envelope import Source
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import AtEvent
from noetl.domain.work import Facts
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import CommandId, EventId, ExecutionId, LoopId
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.snapshot_store import SnapshotStore
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.runtime.running import Running
from noetl.wire.codec import open_stored

QUIET = (
    StepEntered,
    CommandIssued,
    CommandClaimed,
    CommandStarted,
    CommandHeartbeat,
    CommandReleased,
    LoopStarted,
    StageOpened,
    FrameDispatched,
    FrameStarted,
    FrameHeartbeat,
    FrameAbandoned,
)
"""Events that change nothing of what work may see: neither `ctx` nor any result."""


class _Frozen(msgspec.Struct, frozen=True):
    """Where a state was frozen, and what work issued at that moment would have seen."""

    version: int
    facts: Facts


class Loader:
    def __init__(
        self,
        log: EventLog,
        playbooks: Playbooks,
        producer: str,
        snapshots: SnapshotStore | None = None,
    ) -> None:
        self._log = log
        self._playbooks = playbooks
        self._producer = producer
        self._replay = Replay(log, snapshots)

    async def read(self, execution: ExecutionId) -> Running:
        log = self._log
        scope = await log.scope_of(execution)
        first = await log.read(execution, limit=1)
        if scope is None or not first:
            raise ExecutionNotFound(execution)
        running = await self._planned(scope, open_stored(first[0]).event, execution)
        request = ReplayRequest(scope=scope, execution_id=execution)
        frozen = await self._replay.frozen(request, (await log.head(execution)).version)
        begun = None
        if frozen is not None:
            begun = _Frozen(frozen.stream_version, facts_of(frozen))
            running.begin_at(frozen)
        while page := await log.read(execution, after_version=running.head.version):
            running.apply_stored(page)
            if len(page) < PAGE_EVENTS_MAX:
                break
        running.forget_ended_work()
        if begun is not None and not running.is_over:
            await self._recall_facts(running, request, begun)
            await self._recall_holders(running)
        return running

    async def _planned(self, scope: Scope, first: Any, execution: ExecutionId) -> Running:
        if not isinstance(first, PlaybookInitialized):
            raise ExecutionNotFound(execution)
        playbook = await self._playbooks.load(scope, first.playbook_digest)
        source = Source(
            scope=scope,
            execution_id=execution,
            producer=self._producer,
            parent_execution_id=first.parent_execution_id,
        )
        return Running(plan_of(playbook, first.playbook_digest), source)

    async def _recall_facts(self, running: Running, request: ReplayRequest, begun: _Frozen) -> None:
        """Work sees the execution as it was when the work was issued. A frozen state knows what
        is open and not how things were then, so we fold up to there, oldest work first."""
        wanted = [
            (await self._version_of(running.execution_id, event), key)
            for key, event in _without_facts(running)
        ]
        state = ExecutionState()
        for version, key in sorted(wanted):
            if await self._is_quiet(running.execution_id, version, begun.version):
                running.facts[key] = begun.facts
                continue
            frozen = await self._replay.frozen(request, version)
            if frozen is not None and frozen.stream_version > state.stream_version:
                state = frozen
            await self._replay.fold_on(running.execution_id, state, version)
            running.facts[key] = facts_of(state)

    async def _is_quiet(self, execution: ExecutionId, version: int, to_version: int) -> bool:
        """Most work is issued just before, and nothing that it could see has changed since."""
        count = to_version - version
        if count > min(version, PAGE_EVENTS_MAX):
            return False  # folding from the first event is quicker, or there is too much to read
        page = await self._log.read(execution, after_version=version, limit=count)
        return all(isinstance(open_stored(stored).event, QUIET) for stored in page)

    async def _recall_holders(self, running: Running) -> None:
        """Which boot of its worker holds a frame stands in the event that handed it out."""
        for frame in list(running.state.frames.values()):
            if running.holders.of(frame.frame_id) is not None or frame.claimed_event_id is None:
                continue
            version = await self._version_of(running.execution_id, frame.claimed_event_id)
            found = await self._log.read(running.execution_id, after_version=version - 1, limit=1)
            for recorded in map(open_stored, found):
                running.holders.hear(recorded.envelope, recorded.event)

    async def _version_of(self, execution: ExecutionId, event: EventId) -> int:
        return await self._log.version_at(execution, AtEvent(event)) or 0


def _without_facts(running: Running) -> Iterator[tuple[CommandId | LoopId, EventId]]:
    """Open work, and the event that issued it."""
    state = running.state
    for command, row in state.commands.items():
        if command not in running.facts:
            yield command, row.issued_event_id
    for stage in state.stages.values():
        loop = stage.loop_id
        if loop is not None and loop in state.loop_work and loop not in running.facts:
            yield loop, stage.opened_event_id
