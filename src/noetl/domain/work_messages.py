"""What a worker and a desk say to each other over a wire, besides the work itself."""

from typing import Annotated

import msgspec

from noetl.domain.work import Call, ChildOutcome, JournalEntry, Work, WorkerIdentity
from noetl.kernel.ids import CommandId, ExecutionId, FrameId

CLAIM_SECONDS_MAX = 30.0
"""How long a question may wait for its answer; proxies give up on longer ones."""

WaitSeconds = Annotated[float, msgspec.Meta(ge=0, le=CLAIM_SECONDS_MAX)]
Slots = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    worker: WorkerIdentity
    free_slots: Slots
    wait_seconds: WaitSeconds = 0.0


class Claimed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    work: tuple[Work, ...] = ()


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    execution_id: ExecutionId
    command_id: CommandId
    claim: int
    call: Call


class JournalName(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    frame_id: FrameId


class JournalAppend(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    frame_id: FrameId
    entries: tuple[JournalEntry, ...]


class JournalRead(msgspec.Struct, frozen=True, kw_only=True):
    entries: tuple[JournalEntry, ...] = ()


class ChildNamed(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId


class ChildWait(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    wait_seconds: WaitSeconds = 0.0


class ChildAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    outcome: ChildOutcome | None = None  # None: it has not ended within the time


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "ok"
