"""The rows of the six surfaces: what people query, and what checksums prove."""

from typing import Any, Literal

import msgspec

from noetl.domain.events.loop import LoopMode
from noetl.domain.events.stage import StageKind
from noetl.kernel.ids import (
    CommandId,
    EventId,
    ExecutionId,
    FrameId,
    LoopId,
    StageId,
    StepName,
    WorkerId,
)
from noetl.kernel.instant import Instant

Surface = Literal["execution", "stages", "frames", "commands", "business_objects", "loops"]
SURFACES: tuple[Surface, ...] = (
    "execution",
    "stages",
    "frames",
    "commands",
    "business_objects",
    "loops",
)

CHAIN_START = "0" * 64

ExecutionStatus = Literal["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
TERMINAL: frozenset[str] = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class Chain(msgspec.Struct):
    """How many things went by, and a hash that only the same things in the same order give."""

    count: int = 0
    digest: str = CHAIN_START


class ReferenceSummary(msgspec.Struct, frozen=True):
    """What proves a payload, without where it happens to lie in memory."""

    ref: str
    sha256: str | None = None
    schema_digest: str | None = None
    row_count: int | None = None
    media_type: str | None = None


class ExecutionRow(msgspec.Struct, kw_only=True):
    execution_id: ExecutionId = ExecutionId("")
    tenant_id: str = ""
    organization_id: str = ""
    status: ExecutionStatus = "PENDING"
    path: str | None = None
    playbook_version: int | None = None
    playbook_digest: str | None = None
    parent_execution_id: ExecutionId | None = None
    last_node_name: StepName | None = None
    last_event_id: EventId | None = None
    last_event_type: str | None = None
    event_count: int = 0
    unknown_events: int = 0  # of types this build does not know
    unmatched_events: int = 0  # about something that is not open (any more)
    payload_refs: Chain = msgspec.field(default_factory=Chain)
    started_at: Instant | None = None
    ended_at: Instant | None = None
    terminal_event_id: EventId | None = None
    result_ref: ReferenceSummary | None = None
    error_kind: str | None = None
    error: str | None = None


class CommandRow(msgspec.Struct, kw_only=True):
    command_id: CommandId
    step: StepName
    tool: str
    visit: int
    iteration: int | None
    attempt: int
    attempts_max: int
    issued_event_id: EventId
    status: str = "PENDING"
    stage_id: StageId | None = None
    frame_id: FrameId | None = None
    parent_command_id: CommandId | None = None
    placement: str | None = None
    worker_id: WorkerId | None = None
    boot_id: str | None = None
    claim: int = 0
    lease_until: Instant | None = None
    claimed_event_id: EventId | None = None
    started_event_id: EventId | None = None
    terminal_event_id: EventId | None = None
    terminal_version: int | None = None
    calls: int = 0
    result_status: str | None = None
    result_ref: ReferenceSummary | None = None
    error_kind: str | None = None


class LoopRow(msgspec.Struct, kw_only=True):
    loop_id: LoopId
    step: StepName
    visit: int
    mode: LoopMode
    started_event_id: EventId
    total: int | None = None
    done: int = 0
    failed: int = 0
    completed: bool = False
    status: str | None = None
    fanin_status: str | None = None
    collection_ref: ReferenceSummary | None = None
    last_event_id: EventId | None = None
    terminal_version: int | None = None


class StageRow(msgspec.Struct, kw_only=True):
    stage_id: StageId
    stage_kind: StageKind
    step: StepName
    visit: int
    opened_event_id: EventId
    status: str = "OPEN"
    loop_id: LoopId | None = None
    parent_stage_id: StageId | None = None
    dsl_ref: str | None = None
    frame_policy: dict[str, Any] = msgspec.field(default_factory=dict)
    closed_event_id: EventId | None = None
    frame_count: int = 0
    frames_failed: int = 0
    frames_abandoned: int = 0
    row_count: int = 0
    rows_failed: int = 0
    events_emitted: int = 0
    output_ref: ReferenceSummary | None = None
    last_event_id: EventId | None = None
    terminal_version: int | None = None


class FrameRow(msgspec.Struct, kw_only=True):
    frame_id: FrameId
    stage_id: StageId
    ordinal: int
    status: str = "PENDING"
    parent_frame_id: FrameId | None = None
    command_id: CommandId | None = None
    worker_id: WorkerId | None = None
    lease_until: Instant | None = None
    attempts: int = 0
    abandoned: int = 0
    cursor: dict[str, Any] = msgspec.field(default_factory=dict)
    claimed_event_id: EventId | None = None
    started_event_id: EventId | None = None
    terminal_event_id: EventId | None = None
    terminal_version: int | None = None
    row_count: int = 0
    rows_failed: int = 0
    events_emitted: int = 0
    input_ref: ReferenceSummary | None = None
    rows_ref: ReferenceSummary | None = None
    error_kind: str | None = None


class BusinessObjectRow(msgspec.Struct, kw_only=True):
    object: str
    id: str
    status: str | None = None
    version: int = 0
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    deleted: bool = False
    first_event_id: EventId
    last_event_id: EventId
    payload_refs: int = 0
    last_payload: ReferenceSummary | None = None
    terminal_version: int | None = None


class ObjectsRecordedRow(msgspec.Struct, kw_only=True):
    """The object changes of one frame, which are rows of its output and not of the log."""

    objects_ref: ReferenceSummary
    count: int
    event_id: EventId
    terminal_version: int
