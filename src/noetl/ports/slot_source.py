"""Engines that work on stages: each offers slots somewhere, and that is all they differ in."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId, StageId, StepName
from noetl.kernel.scope import Scope


class StageOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A stage that wants slots."""

    scope: Scope
    execution_id: ExecutionId
    stage_id: StageId
    step: StepName
    slots: int
    lease_seconds: float  # of its frames
    frames_per_slot: int = 1  # while one is stored and reported, rows of another can run
    generation: int = 0  # rises with every job over the same stage: later slots void earlier ones


class EngineJob(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be known to find the job of a stage again."""

    engine: str
    session_id: str
    tag: str
    slots: int
    ui_url: str | None = None


Announce = Callable[[EngineJob], Awaitable[None]]


class SlotSource(Protocol):
    async def provide(self, order: StageOrder, announce: Announce) -> None:
        """Offer slots until all of them have left, because the stage was over. `announce` is
        awaited before the first one starts. Raises NoETLError when slots were lost."""
        ...

    def leaves_none(self, error: NoETLError) -> bool:
        """Whether no slot can be left after this failure: what they held may go to others now."""
        ...

    async def withdraw(self, job: EngineJob) -> None:
        """End a job, whoever started it; one that is not there has ended."""
        ...

    async def warm_up(self) -> None:
        """Get ready, so that the first stage need not wait. Failing is no error."""
        ...

    async def close(self) -> None: ...
