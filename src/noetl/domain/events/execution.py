"""Facts about a whole execution, from acceptance to its end."""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, Int64, Result
from noetl.kernel.ids import ExecutionId, StepName


class PlaybookInitialized(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first event of every execution: what runs, on which input, for whom."""

    TYPE: ClassVar[str] = "playbook.initialized"
    VERSION: ClassVar[int] = 1

    path: str
    playbook_digest: str  # the text is in the payload store under this digest
    playbook_version: Int64 = 1
    workload: dict[str, Any] = {}
    parent_execution_id: ExecutionId | None = None
    parent_step: StepName | None = None


class PlaybookCompleted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "playbook.completed"
    VERSION: ClassVar[int] = 1

    step: StepName | None = None  # the step it ended in
    result: Result | None = None


class PlaybookFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "playbook.failed"
    VERSION: ClassVar[int] = 1

    error: Failure
    step: StepName | None = None


class ExecutionPaused(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "execution.paused"
    VERSION: ClassVar[int] = 1

    reason: str | None = None


class ExecutionResumed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "execution.resumed"
    VERSION: ClassVar[int] = 1


class ExecutionCancelled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "execution.cancelled"
    VERSION: ClassVar[int] = 1

    reason: str | None = None
