"""What is true of an execution after some events.

Only what is still open is kept as rows. What became terminal is a count and a hash chain, so a
state is as large as what is open, not as what has happened. Beside the rows is what the decider
reads: names, results, tokens on steps, and the work of open loops. `ctx` and `results` are
replaced, never changed in place, so that open work can share them as they were.
"""

from typing import Any

import msgspec

from noetl.domain.chunk import Chunk
from noetl.domain.events.loop import LoopMode
from noetl.domain.events.values import Failure, Result, ResultReference
from noetl.domain.execution.rows import (
    SURFACES,
    BusinessObjectRow,
    Chain,
    CommandRow,
    ExecutionRow,
    FrameRow,
    LoopRow,
    StageRow,
)
from noetl.domain.work import Call, ClaimedRows
from noetl.kernel.ids import CommandId, EventId, ExecutionId, FrameId, LoopId, StageId, StepName
from noetl.kernel.instant import Instant


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """What was fixed when the execution was accepted."""

    workload: dict[str, Any] = {}
    payload: dict[str, Any] = {}
    env: dict[str, str] = {}
    job_uuid: str = ""
    catalog_id: str | None = None
    parent_stage_id: StageId | None = None


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What its work came to; the step itself is not over before its arcs are chosen."""

    result: Result | None = None
    error: Failure | None = None
    loop_length: int | None = None  # None: it was not a loop


class StepState(msgspec.Struct, kw_only=True):
    """The newest visit of a step; older visits are over."""

    visit: int
    status: str
    attempt: int = 1  # rises by a person's retry
    entered_event_id: EventId | None = None
    exited_event_id: EventId | None = None
    outcome: StepOutcome | None = None
    is_unhandled: bool = False  # it failed, and no arc took that up


class ChunkCount(msgspec.Struct, frozen=True):
    """How far the newest run of a task has come: chunks below `count` are known."""

    run: int
    count: int


class Chunks(msgspec.Struct, kw_only=True):
    """What a visit of a step has yielded so far; older visits are over."""

    visit: int
    counts: dict[str, ChunkCount] = msgspec.field(default_factory=dict)  # by task
    waiting: list[Chunk] = msgspec.field(default_factory=list)  # not passed on yet, in order


class Child(msgspec.Struct, frozen=True):
    """A sub-playbook, and the visit whose work asked for it."""

    execution_id: ExecutionId
    step: StepName
    visit: int


class FailedStep(msgspec.Struct, frozen=True):
    """A failure that no arc took up: the execution drains and then fails."""

    step: StepName
    error: Failure


class Window(msgspec.Struct, frozen=True):
    """Rows of a loop that belong together."""

    first: int
    rows: int


class FrameOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a committed frame left behind."""

    window: Window
    output_ref: ResultReference | None = None
    outcomes: list[Any] = []
    writes: dict[str, Any] = {}
    duration_ms: int = 0
    rows_failed: int = 0
    rows_broken: int = 0
    ordinal: int | None = None  # of its frame, when rows of it failed
    frames: tuple[FrameId, ...] = ()  # whose journals know of its rows, when some failed


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that some frame has begun and no frame has ended well: they go out once more."""

    window: Window
    frames: tuple[FrameId, ...]  # whose journals know of them, the oldest first
    ordinal: int | None = None  # of the frame, when these are all of its rows
    output_ref: ResultReference | None = None  # how they ended: what ended well is not run again
    outcomes: list[Any] = []
    claimed: ClaimedRows | None = None  # the rows themselves, of a cursor


class CursorWork(msgspec.Struct, kw_only=True):
    """What frames of a cursor have claimed, and whether there may be more to claim."""

    claimed: dict[FrameId, ClaimedRows] = msgspec.field(default_factory=dict)  # by frames out
    began: dict[FrameId, int] = msgspec.field(default_factory=dict)  # `filled` at their dispatch
    filled: int = 0  # frames that came back and had claimed rows
    is_dry: bool = False  # a claim that began after the last of them found no rows
    is_low: bool = False  # the last claim that is known found no rows: one looks for all


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a fan-out that has begun: which try it is in, and whether that one has failed."""

    attempt: int = 1
    has_failed: bool = False


class LoopWork(msgspec.Struct, kw_only=True):
    """How far an open loop has come: which rows are out, which are back."""

    loop_id: LoopId
    step: StepName
    visit: int
    mode: LoopMode
    total: int
    attempt: int = 1
    collection: list[Any] | None = None
    collection_ref: ResultReference | None = None
    stage_id: StageId | None = None
    policy: dict[str, Any] = msgspec.field(default_factory=dict)
    next_index: int = 0
    next_ordinal: int = 0
    last_frame: FrameId | None = None  # the one that was handed out last
    out: dict[FrameId, Window] = msgspec.field(default_factory=dict)
    returned: list[Window] = msgspec.field(default_factory=list)  # handed out, and not worked on
    unfinished: list[Unfinished] = msgspec.field(default_factory=list)
    earlier: dict[FrameId, Unfinished] = msgspec.field(default_factory=dict)  # of frames out
    lost: list[Unfinished] = msgspec.field(default_factory=list)  # for a retry
    outputs: list[FrameOutput] = msgspec.field(default_factory=list)
    rows_failed: int = 0
    rows_broken: int = 0
    row_error: Failure | None = None
    frame_error: Failure | None = None
    jobs: int = 0  # how often an engine was asked to work on the stage
    job: dict[str, Any] | None = None  # the last time, as `stage.engine` has it
    cursor: CursorWork = msgspec.field(default_factory=CursorWork)
    shards: dict[FrameId, Shard] = msgspec.field(default_factory=dict)  # of frames out
    has_dataset: bool = False  # an earlier try ended well but for some rows: its name is taken


def _no_chains() -> dict[str, Chain]:
    return {surface: Chain() for surface in SURFACES}


class ExecutionState(msgspec.Struct, kw_only=True):
    """The accumulator of the fold. Only the fold changes it."""

    stream_version: int = 0
    execution: ExecutionRow = msgspec.field(default_factory=ExecutionRow)
    steps: dict[StepName, StepState] = msgspec.field(default_factory=dict)
    commands: dict[CommandId, CommandRow] = msgspec.field(default_factory=dict)
    loops: dict[LoopId, LoopRow] = msgspec.field(default_factory=dict)
    stages: dict[StageId, StageRow] = msgspec.field(default_factory=dict)
    frames: dict[FrameId, FrameRow] = msgspec.field(default_factory=dict)
    business_objects: dict[str, BusinessObjectRow] = msgspec.field(default_factory=dict)
    retired: dict[str, Chain] = msgspec.field(default_factory=_no_chains)
    now: Instant | None = None  # the time of the newest event: what `now()` says to a decision
    run: RunState = RunState()
    ctx: dict[str, Any] = msgspec.field(default_factory=dict)
    results: dict[StepName, Result] = msgspec.field(default_factory=dict)
    open_steps: list[StepName] = msgspec.field(default_factory=list)  # in the order of entering
    tokens: dict[StepName, list[StepName]] = msgspec.field(default_factory=dict)  # from where
    failed: FailedStep | None = None
    ended_in: StepName | None = None
    calls: dict[CommandId, list[Call]] = msgspec.field(default_factory=dict)  # of open commands
    kept_calls: dict[StepName, list[Call]] = msgspec.field(default_factory=dict)  # for a retry
    kept_loops: dict[StepName, LoopWork] = msgspec.field(default_factory=dict)  # for a retry
    children: dict[str, Child] = msgspec.field(default_factory=dict)  # by cycle, while open
    loop_work: dict[LoopId, LoopWork] = msgspec.field(default_factory=dict)
    chunks: dict[StepName, Chunks] = msgspec.field(default_factory=dict)  # of their newest visits
    handed_back: dict[CommandId | FrameId, int] = msgspec.field(default_factory=dict)  # how often
