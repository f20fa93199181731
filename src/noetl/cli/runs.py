"""Start and steer executions, whoever runs them: an engine of our own, or a server."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from noetl.bootstrap.engine import Engine
from noetl.domain.events import Event
from noetl.domain.events.envelope import Envelope
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.runtime.executions import Executions, Outcome
from noetl.runtime.starting import StartRequest

WAIT_SECONDS = 60.0


class Happened(Protocol):
    """An event with its envelope, as the coordinator tells it or as the log gives it back."""

    @property
    def envelope(self) -> Envelope: ...
    @property
    def event(self) -> Event: ...


Follower = Callable[[Sequence[Happened]], None]


def ignore(_events: Sequence[Happened]) -> None:
    """For commands that do not wait."""


class Runs(Protocol):
    """One execution at a time is followed: the one that was last started, resumed or retried."""

    goes_on: str
    """What becomes of an execution when we leave before its end."""

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

    async def outcome(self, execution: ExecutionId) -> Outcome: ...


class EngineRuns:
    """In this process; the follower hears every append once it is durable."""

    goes_on = "it goes on at the next start: noetl dev, or noetl executions resume"
    is_server = False

    def __init__(self, engine: Engine, follower: Follower) -> None:
        self._engine = engine
        self._scope = engine.settings.scope
        self._follower = follower
        self._followed: ExecutionId | None = None
        engine.coordinator.listeners.append(self._hear)

    def _hear(self, execution: ExecutionId, events: Sequence[Happened]) -> None:
        if execution == self._followed:
            self._follower(events)

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
        self._followed = execution
        await self._engine.control.resume(self._scope, execution)

    async def retry(
        self, execution: ExecutionId, step: StepName | None, reason: str | None
    ) -> None:
        self._followed = execution
        await self._engine.control.retry(self._scope, execution, step=step, reason=reason)

    async def until_over(self, execution: ExecutionId) -> None:
        while await self._engine.coordinator.ending(execution, WAIT_SECONDS) is None:
            pass

    async def outcome(self, execution: ExecutionId) -> Outcome:
        platform = self._engine.platform
        executions = Executions(platform.log, platform.projections, platform.results)
        return await executions.outcome(self._scope, execution)
