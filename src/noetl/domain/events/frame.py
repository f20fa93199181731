"""Facts about a frame: a bounded window of a stage's rows under one lease.

The frame's and the stage's ids are in the envelope (`frame_id`, `stage_id`).
"""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, ResultReference
from noetl.kernel.ids import FrameId, WorkerId
from noetl.kernel.instant import Instant


class FrameDispatched(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "frame.dispatched"
    VERSION: ClassVar[int] = 1

    ordinal: int  # in its stage, by dispatch order
    worker_id: WorkerId
    lease_until: Instant
    attempt: int = 1
    attempts_max: int = 1
    cursor: dict[str, Any] = {}
    parent_frame_id: FrameId | None = None
    slot: int | None = None
    incarnation: int | None = None


class FrameStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "frame.started"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    lease_until: Instant | None = None
    input_ref: ResultReference | None = None  # staged rows of a cursor claim
    transaction_id: str | None = None  # of the claim, so a takeover can ask what became of it


class FrameHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "frame.heartbeat"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    lease_until: Instant


class FrameAbandoned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lease was lost. The whole frame goes back to be handed out again."""

    TYPE: ClassVar[str] = "frame.abandoned"
    VERSION: ClassVar[int] = 1

    previous_owner: WorkerId
    previous_attempts: int
    prior_lease_until: Instant | None = None
    reclaimer: WorkerId | None = None
    attempts_max: int = 1
    retry_mode: str = "whole_frame"
    row_split_retry: bool = False


class FrameCommitted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One commit per frame, not per row. Failed rows are rows of the output."""

    TYPE: ClassVar[str] = "frame.committed"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    row_count: int
    failed_rows: int = 0
    events_emitted: int = 0
    output_ref: ResultReference | None = None
    cursor: dict[str, Any] = {}
    metrics: dict[str, Any] = {}


class FrameFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The frame itself could not be processed."""

    TYPE: ClassVar[str] = "frame.failed"
    VERSION: ClassVar[int] = 1

    error: Failure
    worker_id: WorkerId | None = None
    row_count: int = 0
    events_emitted: int = 0
    output_ref: ResultReference | None = None
    cursor: dict[str, Any] = {}
    retry_mode: str = "whole_frame"
