"""Facts about handing work out: issued, claimed, kept alive, reported.

The command's id is in the envelope (`command_id`), where every store can index it.
"""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, InstantText, Int64, Result
from noetl.kernel.ids import CommandId, StepName, WorkerId


class CommandIssued(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.issued"
    VERSION: ClassVar[int] = 1

    step: StepName
    tool: str
    visit: Int64 = 1
    iteration: Int64 | None = None
    attempt: Int64 = 1  # rises by a shard's retry or a person's, never by a lost lease
    attempts_max: Int64 = 1
    parent_command_id: CommandId | None = None
    placement: str | None = None


class CommandClaimed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker holds the command until `lease_until`. A takeover only raises `claim`."""

    TYPE: ClassVar[str] = "command.claimed"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: Int64
    lease_until: InstantText
    boot_id: str | None = None  # the worker's incarnation: a restart voids its leases
    placement: str | None = None


class CommandStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.started"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: Int64


class CommandHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.heartbeat"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: Int64
    lease_until: InstantText


class CommandReleased(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Its worker left in good order before the end: it may be claimed again, and was not lost."""

    TYPE: ClassVar[str] = "command.released"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: Int64


class CommandCompleted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.completed"
    VERSION: ClassVar[int] = 1

    claim: Int64
    worker_id: WorkerId | None = None
    result: Result | None = None
    writes: dict[str, Any] = {}  # what its pipeline wrote to `ctx`
    duration_ms: Int64 | None = None


class CommandFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.failed"
    VERSION: ClassVar[int] = 1

    error: Failure
    claim: Int64
    worker_id: WorkerId | None = None
    result: Result | None = None  # of the tasks that did succeed
    writes: dict[str, Any] = {}
    duration_ms: Int64 | None = None


class CommandCancelled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.cancelled"
    VERSION: ClassVar[int] = 1

    reason: str | None = None
