"""Facts about one pass of a loop, and about the shards of a fan-out.

There is no event per item: what happened to an item is a row of a frame's output.
"""

from typing import Any, ClassVar, Literal

import msgspec

from noetl.domain.events.values import Failure, InstantText, Int64, Result, ResultReference
from noetl.kernel.ids import FrameId, LoopId, StepName, WorkerId

LoopMode = Literal["sequential", "parallel", "cursor", "fanout"]


FaninStatus = Literal["complete", "partial", "failed"]
"""All shards are done, some are, none is."""


class LoopStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    total: Int64
    succeeded: Int64 = 0
    failed: Int64 = 0
    skipped: Int64 = 0
    broken: Int64 = 0


class LoopStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "loop.started"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    step: StepName
    mode: LoopMode
    visit: Int64 = 1
    collection_size: Int64 | None = None  # None: a cursor does not know
    collection: list[Any] | None = None  # the items themselves, when they are few
    collection_ref: ResultReference | None = None
    attempt: Int64 = 1  # above 1 it goes on with the rows that the visit has not done yet


class LoopDone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Comes exactly once per pass, whatever became of its rows."""

    TYPE: ClassVar[str] = "loop.done"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    step: StepName
    status: str
    stats: LoopStats
    visit: Int64 = 1
    result: Result | None = None
    error: Failure | None = None  # why the step fails; None: it succeeded, if only in part
    writes: dict[str, Any] = {}  # of rows that ran side by side, the last by index


class FanoutStarted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "loop.fanout.started"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    step: StepName
    total_shards: Int64
    visit: Int64 = 1


class ShardEnqueued(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A shard is on its way to its holder: for the first time, or after it failed.

    A holder that is lost is followed by another one (`frame.abandoned`, `frame.dispatched`) within
    the same try.
    """

    TYPE: ClassVar[str] = "loop.shard.enqueued"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    shard_id: str
    iter_index: Int64
    iter_key: str | None = None
    shard_attempt: Int64 = 1  # rises when the shard failed and is tried again
    worker_id: WorkerId | None = None
    lease_until: InstantText | None = None
    attempt: Int64 | None = None  # of its frame: rises with every holder
    incarnation: Int64 | None = None
    parent_frame_id: FrameId | None = None  # the shard that was enqueued before it


class ShardDone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stands in for `command.completed`: a shard's end is a command's end."""

    TYPE: ClassVar[str] = "loop.shard.done"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    shard_id: str
    shard_attempt: Int64 = 1
    result: Result | None = None  # by reference: a frame's output of one row
    worker_id: WorkerId | None = None
    events_emitted: Int64 = 0
    writes: dict[str, Any] = {}  # applied when the loop is done, in the order of indexes
    metrics: dict[str, Any] = {}


class ShardFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts as failed only when no retry is left (`final`)."""

    TYPE: ClassVar[str] = "loop.shard.failed"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    shard_id: str
    error: Failure
    final: bool
    shard_attempt: Int64 = 1
    worker_id: WorkerId | None = None
    events_emitted: Int64 = 0
    writes: dict[str, Any] = {}
    metrics: dict[str, Any] = {}


class FaninCompleted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Comes exactly once per fan-out. Shards that are neither done nor failed were not begun."""

    TYPE: ClassVar[str] = "loop.fanin.completed"
    VERSION: ClassVar[int] = 1

    loop_id: LoopId
    status: FaninStatus
    total: Int64
    done: Int64
    failed: Int64 = 0
