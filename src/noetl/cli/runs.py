"""Start and steer executions, whoever runs them: an engine of our own, or a server."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from noetl.bootstrap.engine import Engine
from noetl.domain.events import Event
from noetl.domain.events.envelope import Envelope
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.runtime.executions import Executions, Outcome
from noetl.runtime.starting import StartRequest
from noetl.wire.codec import open_stored

WAIT_SECONDS = 60.0
RECALLED_EVENTS_MAX = 20_000
"""Of a longer log the beginning is enough: steps that are open are there, counts may be short."""


class Happened(Protocol):
    """An event with its envelope, as the coordinator tells it or as the log gives it back."""

    @property
    def envelope(self) -> Envelope: ...
    @property
    def event(self) -> Event: ...


class Follower(Protocol):
    def __call__(self, events: Sequence[Happened]) -> None: ...

    def recall(self, events: Sequence[Happened]) -> None:
        """What happened before we came: to be known, and not to be shown."""
        ...


class GoesOn(NamedTuple):
    """What becomes of an execution when we leave before its end, and how to see it end."""

    words: str
    command: str  # to be followed by its id


class Nobody:
    """For commands that do not wait."""

    def __call__(self, events: Sequence[Happened]) -> None:
        pass

    def recall(self, events: Sequence[Happened]) -> None:
        pass


class Runs(Protocol):
    """One execution at a time is followed: the one that was last started, resumed or retried."""

    goes_on: GoesOn

    is_server: bool
    """It goes on without us."""

    async def has_ended_since(self, execution: ExecutionId, moment: Instant) -> bool: ...

    async def register(self, text: bytes) -> tuple[str, int]:
        """Its path and version."""
        ...

    async def start(
        self, path: str, version: int | None, payload: dict[str, Any]
    ) -> ExecutionId: ...

    async def cancel(
        self, execution: ExecutionId, reason: str | None, *, cascade: bool = True
    ) -> list[ExecutionId]: ...

    async def pause(self, execution: ExecutionId, reason: str | None) -> None: ...

    async def resume(self, execution: ExecutionId) -> None: ...

    async def retry(
        self, execution: ExecutionId, step: StepName | None, reason: str | None
    ) -> None: ...

    async def until_over(self, execution: ExecutionId) -> None: ...

    def hurry(self) -> None:
        """When we leave, let nothing hold us up."""
        ...

    async def leave(self, execution: ExecutionId, /) -> bool:
        """Put down what we have in hands; whether the execution came to its end by that."""
        ...

    def also_open(self) -> list[ExecutionId]:
        """Executions that are left with us: sub-playbooks that nobody waits for."""
        ...

    async def outcome(self, execution: ExecutionId) -> Outcome: ...


class EngineRuns:
    """In this process; the follower hears every append once it is durable."""

    goes_on = GoesOn("no process runs it now", "executions resume")
    is_server = False

    def __init__(self, engine: Engine, follower: Follower) -> None:
        self._engine = engine
        self._scope = engine.settings.scope
        self._follower = follower
        self._followed: ExecutionId | None = None
        self._waiting: list[Happened] | None = None  # until what was before them is known
        engine.coordinator.listeners.append(self._hear)

    def _hear(self, execution: ExecutionId, events: Sequence[Happened]) -> None:
        if execution != self._followed:
            return
        if self._waiting is None:
            self._follower(events)
        else:
            self._waiting += events

    async def has_ended_since(self, execution: ExecutionId, moment: Instant) -> bool:
        row = (await self._engine.coordinator.load(execution)).state.execution
        return row.ended_at is not None and row.ended_at >= moment

    async def register(self, text: bytes) -> tuple[str, int]:
        entry = (await self._engine.playbooks.register(self._scope, text)).entry
        return entry.path, entry.version

    async def start(self, path: str, version: int | None, payload: dict[str, Any]) -> ExecutionId:
        # Named before it starts, so that its first events are heard.
        execution = self._followed = ExecutionId(self._engine.platform.new_id())
        request = StartRequest(
            scope=self._scope, path=path, version=version, payload=payload, execution_id=execution
        )
        return await self._engine.starter.start(request)

    async def cancel(
        self, execution: ExecutionId, reason: str | None, *, cascade: bool = True
    ) -> list[ExecutionId]:
        control = self._engine.control
        return await control.cancel(self._scope, execution, reason=reason, cascade=cascade)

    async def pause(self, execution: ExecutionId, reason: str | None) -> None:
        await self._engine.control.pause(self._scope, execution, reason=reason)

    async def resume(self, execution: ExecutionId) -> None:
        await self._take_up(execution)
        await self._engine.control.resume(self._scope, execution)

    async def retry(
        self, execution: ExecutionId, step: StepName | None, reason: str | None
    ) -> None:
        await self._take_up(execution)
        await self._engine.control.retry(self._scope, execution, step=step, reason=reason)

    async def _take_up(self, execution: ExecutionId) -> None:
        """Whoever had it may have been killed: we go on with all that was open of it."""
        if await self._engine.platform.log.scope_of(execution) == self._scope:
            await self._catch_up(execution)
            await self._engine.recovery.take_up(self._scope, execution)

    async def _catch_up(self, execution: ExecutionId) -> None:
        """What it does from now on is told after what it did."""
        self._followed, self._waiting = execution, []
        version, log = 0, self._engine.platform.log
        while version < RECALLED_EVENTS_MAX:
            page = await log.read(execution, after_version=version)
            self._follower.recall([open_stored(stored) for stored in page])
            version = page[-1].stream_version if page else version
            if len(page) < PAGE_EVENTS_MAX:
                break
        heard, self._waiting = self._waiting, None
        self._follower([each for each in heard if each.envelope.stream_version > version])

    async def until_over(self, execution: ExecutionId) -> None:
        while await self._engine.coordinator.ending(execution, WAIT_SECONDS) is None:
            pass

    def hurry(self) -> None:
        self._engine.leaving.hurry()

    async def leave(self, execution: ExecutionId) -> bool:
        await self._engine.leaving.leave()
        return (await self._engine.coordinator.load(execution)).is_over

    def also_open(self) -> list[ExecutionId]:
        running = self._engine.coordinator.running
        return sorted(each for each in running if each != self._followed)

    async def outcome(self, execution: ExecutionId) -> Outcome:
        platform = self._engine.platform
        executions = Executions(platform.log, platform.projections, platform.results)
        return await executions.outcome(self._scope, execution)
