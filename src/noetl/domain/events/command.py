"""Facts about handing work out: issued, claimed, kept alive, reported.

The command's id is in the envelope (`command_id`), where every store can index it.
"""

from typing import ClassVar

import msgspec

from noetl.domain.events.values import Failure, Result
from noetl.kernel.ids import CommandId, StepName, WorkerId
from noetl.kernel.instant import Instant


class CommandIssued(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.issued"
    VERSION: ClassVar[int] = 1

    step: StepName
    tool: str
    visit: int = 1
    iteration: int | None = None
    attempt: int = 1  # rises by a shard's retry or a person's, never by a lost lease
    attempts_max: int = 1
    parent_command_id: CommandId | None = None
    placement: str | None = None


class CommandClaimed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker holds the command until `lease_until`. A takeover only raises `claim`."""

    TYPE: ClassVar[str] = "command.claimed"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: int
    lease_until: Instant
    boot_id: str | None = None  # the worker's incarnation: a restart voids its leases
    placement: str | None = None


class CommandStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.started"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: int


class CommandHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.heartbeat"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    claim: int
    lease_until: Instant


class CommandCompleted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.completed"
    VERSION: ClassVar[int] = 1

    claim: int
    worker_id: WorkerId | None = None
    result: Result | None = None
    duration_ms: int | None = None


class CommandFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.failed"
    VERSION: ClassVar[int] = 1

    error: Failure
    claim: int
    worker_id: WorkerId | None = None
    duration_ms: int | None = None


class CommandCancelled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "command.cancelled"
    VERSION: ClassVar[int] = 1

    reason: str | None = None
