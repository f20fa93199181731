"""Facts about a whole execution, from acceptance to its end."""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, Int64, Result
from noetl.kernel.ids import ExecutionId, StageId, StepName


class PlaybookInitialized(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first event of every execution: what runs, on which input, for whom."""

    TYPE: ClassVar[str] = "playbook.initialized"
    VERSION: ClassVar[int] = 1

    path: str
    playbook_digest: str  # the text is in the payload store under this digest
    playbook_version: Int64 = 1
    workload: dict[str, Any] = {}  # rendered, with what the request brought over it
    payload: dict[str, Any] = {}  # what the request brought
    env: dict[str, str] = {}  # the names that templates may read, as they were
    job_uuid: str | None = None
    parent_execution_id: ExecutionId | None = None
    parent_step: StepName | None = None
    parent_stage_id: StageId | None = None  # whose row, or whose row's child, asked for it
    start_key: str | None = None  # whoever asks again with it gets this execution


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


class ExecutionRetried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's retry: the execution runs again from this step.

    At the visit that failed its try rises; any other visit is a new one.
    """

    TYPE: ClassVar[str] = "execution.retried"
    VERSION: ClassVar[int] = 1

    step: StepName
    visit: Int64
    attempt: Int64 = 1
    reason: str | None = None
    also: bool = False  # one more step of the same retry: several branches had failed


class ChildStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cycle asked for a sub-playbook; recorded before it starts, so there is one per cycle."""

    TYPE: ClassVar[str] = "child.started"
    VERSION: ClassVar[int] = 1

    cycle: str
    child_execution_id: ExecutionId
    path: str
    playbook_version: Int64 = 1


class ExecutionCancelled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "execution.cancelled"
    VERSION: ClassVar[int] = 1

    reason: str | None = None
    cascade: bool = False  # its children end with it, also when nobody lives to tell them
