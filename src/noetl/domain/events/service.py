"""Facts that the services record about their own work: batches, checkpoints, capacity."""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, Int64
from noetl.kernel.ids import EventId, WorkerId


class BatchAccepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "batch.accepted"
    VERSION: ClassVar[int] = 1

    request_id: str
    count: Int64 = 0


class BatchProcessing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "batch.processing"
    VERSION: ClassVar[int] = 1

    request_id: str


class BatchCompleted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "batch.completed"
    VERSION: ClassVar[int] = 1

    request_id: str
    count: Int64 = 0


class BatchFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "batch.failed"
    VERSION: ClassVar[int] = 1

    request_id: str
    error: Failure


class CheckpointCommitted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "checkpoint.committed"
    VERSION: ClassVar[int] = 1

    epoch_id: str
    last_event_id: EventId


class WorkerCapacity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "worker.capacity"
    VERSION: ClassVar[int] = 1

    worker_id: WorkerId
    capacity: Int64
    in_use: Int64 = 0
    labels: dict[str, Any] = {}
