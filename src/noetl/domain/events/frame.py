"""Facts about a frame: a bounded window of a stage's rows under one lease.

The frame's and the stage's ids are in the envelope (`frame_id`, `stage_id`).
"""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, InstantText, Int64, ResultReference
from noetl.kernel.ids import FrameId, WorkerId


class FrameDispatched(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frame is lent; `attempt` counts its holders.

    `incarnation` is the holder's life: of a Spark slot the number of its stage's job, times 1,000,
    and the attempt of its task; of other workers a number that another start changes.
    """

    TYPE: ClassVar[str] = "frame.dispatched"
    VERSION: ClassVar[int] = 1

    ordinal: Int64  # in its stage, by dispatch order
    worker_id: WorkerId
    lease_until: InstantText
    attempt: Int64 = 1
    attempts_max: Int64 = 1
    cursor: dict[str, Any] = {}
    parent_frame_id: FrameId | None = None  # the one that its stage handed out before it
    slot: Int64 | None = None  # of an engine
    incarnation: Int64 | None = None
    previous_owner: WorkerId | None = None  # of a frame that is handed out again
    previous_attempts: Int64 = 0
    prior_lease_until: InstantText | None = None
    retry_mode: str = "whole_frame"
    row_split_retry: bool = False


class FrameStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "frame.started"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    lease_until: InstantText | None = None
    input_ref: ResultReference | None = None  # staged rows of a cursor claim
    transaction_id: str | None = None  # of the claim, so a takeover can ask what became of it
    rows: list[Any] = []  # the staged rows themselves, when they are few
    cursor: dict[str, Any] = {}  # which rows of the loop they are


class FrameHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "frame.heartbeat"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    lease_until: InstantText


class FrameAbandoned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lease was lost. The whole frame goes back to be handed out again."""

    TYPE: ClassVar[str] = "frame.abandoned"
    VERSION: ClassVar[int] = 1

    previous_owner: WorkerId
    previous_attempts: Int64
    prior_lease_until: InstantText | None = None
    reclaimer: WorkerId | None = None  # who took it back; None: its holder gave it back
    attempts_max: Int64 = 1
    retry_mode: str = "whole_frame"
    row_split_retry: bool = False
    handed_back: bool = False  # its holder left in good order: this is no loss


class FrameCommitted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One commit per frame, not per row. Failed rows are rows of the output."""

    TYPE: ClassVar[str] = "frame.committed"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    row_count: Int64
    failed_rows: Int64 = 0
    events_emitted: Int64 = 0
    output_ref: ResultReference | None = None
    broken_rows: Int64 = 0
    outcomes: list[Any] = []  # all of them when there is no `output_ref`, else the first
    writes: dict[str, Any] = {}  # what its rows wrote to `ctx`, the last by index
    row_error: Failure | None = None  # of its first failed row
    cursor: dict[str, Any] = {}
    metrics: dict[str, Any] = {}


class FrameFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The frame itself could not be processed."""

    TYPE: ClassVar[str] = "frame.failed"
    VERSION: ClassVar[int] = 1

    error: Failure
    worker_id: WorkerId | None = None
    row_count: Int64 = 0
    events_emitted: Int64 = 0
    output_ref: ResultReference | None = None
    cursor: dict[str, Any] = {}
    retry_mode: str = "whole_frame"
    row_split_retry: bool = False
    attempts: Int64 = 0  # holders that it had
    attempts_max: Int64 = 1
