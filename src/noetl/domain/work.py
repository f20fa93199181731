"""What the coordinator hands out and what workers report: plain data, in a process or over HTTP."""

from typing import Any, Literal

import msgspec

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.events.loop import LoopMode
from noetl.domain.events.values import Failure, Result, ResultReference
from noetl.domain.naming.distance import Distance
from noetl.domain.naming.locator import Locality
from noetl.domain.naming.placement import CellPlacement, StoreAddress
from noetl.domain.playbook.model import FailureMode
from noetl.kernel.ids import CommandId, ExecutionId, FrameId, StageId, StepName, WorkerId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope

NextAction = Literal["continue", "wait", "stop"]
"""What a worker should do next: go on, start nothing new, or give up what it has."""

HOLDERS_MAX = 1_000
"""No work is handed out more often than this between two retries by a person."""

FrameQuestion = tuple[str, str]  # a worker's own count: `worker_slot_id`, `frame_index`


class RunFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is fixed when an execution is accepted."""

    execution_id: ExecutionId
    job_uuid: str = ""
    catalog_id: str | None = None
    path: str = ""
    version: int = 1
    parent_execution_id: ExecutionId | None = None
    payload: dict[str, Any] = {}  # what the request brought
    env: dict[str, str] = {}  # allowed names, recorded at the start


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The execution as it was when the work was issued: all that the work may see of it."""

    run: RunFacts
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    results: dict[StepName, Result] = {}


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one run of one task ended. `run` counts passes: a jump back is a new run."""

    task: str
    run: int = 1
    result: Result | None = None
    error: Failure | None = None
    writes: dict[str, Any] = {}  # `set` of this cycle: `ctx.total` -> value, `iter.page` -> value
    effect: str | None = None  # `fired`, or `repeated` after a doubt; None: it has none
    tries: int = 1
    duration_ms: int = 0


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cycle of one row of a frame, or a mark: rows that may have begun, a row that is over.

    A call without result and without error has not ended: it was tried `tries` times.
    """

    row: int  # its index in the loop
    call: Call | None = None
    rows: int = 0  # from now on so many rows from `row` on may have fired an effect
    has_ended: bool = False  # the row is over: nothing of it is in doubt any more


class CommandWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="command"):
    """A step's pipeline to be run once."""

    scope: Scope
    execution_id: ExecutionId
    playbook_digest: str
    step: StepName
    visit: int
    command_id: CommandId
    claim: int
    lease_until: Instant
    lease_seconds: float
    facts: Facts
    journal: tuple[Call, ...] = ()  # calls that an earlier holder recorded: adopt, do not repeat
    traceparent: str = ""  # the span of its step, when the server tells spans
    visit_attempt: int = 1  # rises by a person's retry of the step

    @property
    def holder(self) -> int:
        """Which holder of the step's visit this is, in the names of what it writes."""
        return holder_of(self.claim, self.visit_attempt)


class ClaimedRows(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows that a frame of a cursor has claimed: known before the claim itself is committed."""

    transaction: str  # by which the database knows what became of the claim
    row_count: int
    rows: list[Any] | None = None  # None: they are in the store
    reference: ResultReference | None = None


class FrameWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="frame"):
    """Rows of a loop from `first_index` on, under one lease; a cursor's frame has yet to claim."""

    scope: Scope
    execution_id: ExecutionId
    playbook_digest: str
    step: StepName
    visit: int
    stage_id: StageId
    frame_id: FrameId
    ordinal: int
    attempt: int
    lease_until: Instant
    lease_seconds: float
    mode: LoopMode
    first_index: int
    row_count: int
    total: int
    row_concurrency: int
    seconds_max: float | None = None  # stop starting rows after this time
    bytes_max: int | None = None  # stop starting rows when their values are together this large
    heartbeat_seconds: float | None = None  # heartbeats at least this often
    failure: FailureMode = "fail_fast"
    facts: Facts
    rows: list[Any] | None = None  # None: they are rows of `collection`
    collection: ResultReference | None = None
    traceparent: str = ""  # the span of its step, when the server tells spans
    visit_attempt: int = 1  # rises by a person's retry of the loop
    after: tuple[FrameId, ...] = ()  # earlier frames over these rows: their journals still hold
    kept: tuple["RowOutcome", ...] = ()  # how the rows ended there: what ended well is not run
    kept_ref: ResultReference | None = None  # the same, when it is large
    policy: dict[str, Any] = {}  # of a cursor's stage, as it was recorded
    claimed: ClaimedRows | None = None  # by an earlier holder of a cursor's frame
    open_frames: tuple[FrameId, ...] = ()  # of a cursor, whose claims may still be asked for
    shard_attempt: int = 1  # of a fan-out: which try this is

    @property
    def holder(self) -> int:
        """Which holder of the frame this is, in the names of what it writes."""
        return holder_of(self.attempt, self.visit_attempt)


def holder_of(claim: int, visit_attempt: int) -> int:
    """A retry by a person begins to count anew."""
    return claim + (visit_attempt - 1) * HOLDERS_MAX


Work = CommandWork | FrameWork


class CommandReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="command"):
    """The end of a command: its last calls, its result or error, and what it wrote."""

    execution_id: ExecutionId
    command_id: CommandId
    claim: int
    worker_id: WorkerId
    calls: tuple[Call, ...] = ()  # those that `record_call` has not recorded
    result: Result | None = None
    error: Failure | None = None  # None: it succeeded
    writes: dict[str, Any] = {}  # `ctx` names only, in the order they were written
    emitted: tuple[BusinessObjectChanged, ...] = ()
    duration_ms: int = 0


class FrameReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="frame"):
    """The end of a frame. `row_count` may be less than was handed out: the rest is a new frame."""

    execution_id: ExecutionId
    stage_id: StageId
    frame_id: FrameId
    attempt: int
    worker_id: WorkerId
    row_count: int = 0
    failed_rows: int = 0
    broken_rows: int = 0
    output: ResultReference | None = None  # a list of RowOutcome, in index order
    outcomes: tuple["RowOutcome", ...] = ()  # all of them when there is no output, else the first
    writes: dict[str, Any] = {}  # `ctx` names, the last writer by index
    row_error: Failure | None = None  # of the first failed row
    error: Failure | None = None  # the frame itself could not be processed
    emitted: tuple[BusinessObjectChanged, ...] = ()
    repeated: tuple[str, ...] = ()  # cycles that ran again because they were in doubt
    adopted: tuple[str, ...] = ()  # cycles that an earlier holder had fired and recorded
    in_doubt: tuple[str, ...] = ()  # cycles that did not run because they were in doubt
    metrics: dict[str, Any] = {}  # rows, task milliseconds, how many effects fired and adopted
    cursor: dict[str, Any] = {}  # how far its holder came, in the holder's own words
    events_emitted: int = 0  # besides those in `emitted`


Report = CommandReport | FrameReport


class RowOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of a frame's output."""

    index: int
    status: Literal["ok", "failed", "break", "skipped"]
    value: Any = None
    error: Failure | None = None
    writes: dict[str, Any] = {}


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of `command_id` and `frame_id` is set; `claim` is the frame's attempt for frames."""

    execution_id: ExecutionId
    worker_id: WorkerId
    claim: int
    command_id: CommandId | None = None
    stage_id: StageId | None = None
    frame_id: FrameId | None = None
    lease_seconds: float | None = None  # None: as before


def heartbeat_of(work: Work, worker_id: WorkerId) -> Heartbeat:
    if isinstance(work, CommandWork):
        names: dict[str, Any] = {"claim": work.claim, "command_id": work.command_id}
    else:
        names = {"claim": work.attempt, "stage_id": work.stage_id, "frame_id": work.frame_id}
    return Heartbeat(execution_id=work.execution_id, worker_id=worker_id, **names)


class FrameStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frame of a cursor has claimed rows, and will commit the claim once this is recorded."""

    execution_id: ExecutionId
    stage_id: StageId
    frame_id: FrameId
    attempt: int
    worker_id: WorkerId
    claimed: ClaimedRows


class LeaseAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    next_action: NextAction
    lease_until: Instant | None = None
    first_index: int | None = None  # of the rows that a cursor's frame has claimed


class Reported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a report, and work for the slot that it freed."""

    duplicate: bool = False
    next_work: tuple[Work, ...] = ()


class StageServed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one stage that a slot of an engine, or a worker by frames, works on."""

    execution_id: ExecutionId
    stage_id: StageId
    is_shared: bool = False  # others may take frames of the stage, too
    slot: int | None = None  # its number among the slots of the engine
    question: FrameQuestion | None = None  # asked again, it gets the same frames
    command_id: CommandId | None = None  # on whose behalf
    source: Locality | None = None  # of the rows, if the worker knows better


class WorkerIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`boot_id` is another one after every start: a restart voids the leases of the one before."""

    worker_id: WorkerId
    boot_id: str
    slots: int
    tools: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    placement: CellPlacement | None = None  # where it keeps results; None: where the server does
    store: StoreAddress | None = None  # and in which store; None: through the server
    serves: StageServed | None = None  # None: whatever there is to do
    lease_seconds: float | None = None  # of its frames; None: as the stage, or the server, says
    locality: Locality | None = None  # where it is; None: nobody says
    near: Locality | None = None  # where it wants rows from; None: from where it is
    distance_max: Distance = "any"  # rows that lie farther away are not for it


class ChildRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sub-playbook asked for by one cycle; asking again for the same cycle gives the same one."""

    execution_id: ExecutionId
    command_id: CommandId | None = None
    stage_id: StageId | None = None
    cycle: str  # execution/step/visit/iteration/task/run
    path: str | None = None
    catalog_id: str | None = None
    version: int | None = None
    payload: dict[str, Any] = {}


class ChildOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    execution_id: ExecutionId
    status: Literal["COMPLETED", "FAILED", "CANCELLED"]
    result: Result | None = None
    step_results: dict[StepName, Result] = {}
    error: Failure | None = None
