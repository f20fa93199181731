"""The catalogue: every event there is. Adding one here is the only way to add one."""

from typing import Any, ClassVar, Protocol

import msgspec

from noetl.domain.events.business_object import BusinessObjectChanged, BusinessObjectsRecorded
from noetl.domain.events.command import (
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandIssued,
    CommandReleased,
    CommandStarted,
)
from noetl.domain.events.execution import (
    ChildStarted,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
)
from noetl.domain.events.frame import (
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameHeartbeat,
    FrameStarted,
)
from noetl.domain.events.loop import (
    FaninCompleted,
    FanoutStarted,
    LoopDone,
    LoopStarted,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
)
from noetl.domain.events.service import (
    BatchAccepted,
    BatchCompleted,
    BatchFailed,
    BatchProcessing,
    CheckpointCommitted,
    WorkerCapacity,
)
from noetl.domain.events.stage import StageClosed, StageEngine, StageOpened
from noetl.domain.events.step import (
    CallDone,
    CallFailed,
    CallPartial,
    ChunkPassed,
    StepEntered,
    StepExited,
    StepSkipped,
)

BUSINESS_OBJECT = "business_object"
"""The aggregate type that makes an event of any name a change of a business object."""


class Event(Protocol):
    """What every event class of the catalogue has; the rest is its own."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int]


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event type that this build does not know: kept and counted, never understood."""

    TYPE: ClassVar[str] = "unknown"
    VERSION: ClassVar[int] = 1

    body: dict[str, Any]


EVENT_CLASSES: tuple[type[Event], ...] = (
    PlaybookInitialized,
    PlaybookCompleted,
    PlaybookFailed,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionCancelled,
    ExecutionRetried,
    ChildStarted,
    StepEntered,
    StepExited,
    StepSkipped,
    CallDone,
    CallFailed,
    CallPartial,
    ChunkPassed,
    CommandIssued,
    CommandClaimed,
    CommandStarted,
    CommandHeartbeat,
    CommandReleased,
    CommandCompleted,
    CommandFailed,
    CommandCancelled,
    LoopStarted,
    LoopDone,
    FanoutStarted,
    ShardEnqueued,
    ShardDone,
    ShardFailed,
    FaninCompleted,
    StageOpened,
    StageEngine,
    StageClosed,
    FrameDispatched,
    FrameStarted,
    FrameHeartbeat,
    FrameAbandoned,
    FrameCommitted,
    FrameFailed,
    BusinessObjectChanged,
    BusinessObjectsRecorded,
    BatchAccepted,
    BatchProcessing,
    BatchCompleted,
    BatchFailed,
    CheckpointCommitted,
    WorkerCapacity,
)

CATALOGUE: dict[str, type[Event]] = {cls.TYPE: cls for cls in EVENT_CLASSES}
