"""What a worker that knows only stages and frames says over HTTP, and what it is answered."""

from typing import Annotated, Any, Literal

import msgspec

from noetl.domain.events.values import Failure
from noetl.domain.naming.distance import Distance
from noetl.domain.naming.locator import Locality
from noetl.domain.work import FrameWork, NextAction
from noetl.domain.work_messages import WaitSeconds
from noetl.kernel.ids import CommandId, EventId, ExecutionId, FrameId, StageId, WorkerId
from noetl.kernel.instant import Instant

FRAMES_MAX = 100
LEASE_SECONDS_MIN, LEASE_SECONDS_MAX = 5.0, 3_600.0

LeaseSeconds = Annotated[float, msgspec.Meta(ge=LEASE_SECONDS_MIN, le=LEASE_SECONDS_MAX)]
Attempt = Annotated[int, msgspec.Meta(ge=1)]
RowCount = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
PlaceText = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
OwnWorker = Annotated[WorkerId, msgspec.Meta(min_length=1, max_length=200)]


class ClaimLocality(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Where a worker is, and how far away the rows may lie that it takes."""

    region: PlaceText | None = None
    zone: PlaceText | None = None
    cluster: PlaceText | None = None
    node: PlaceText | None = None
    prefer_zone: PlaceText | None = None  # whose rows it wants; by default of its own zone and node
    prefer_node: PlaceText | None = None
    max_distance: Distance = "any"

    @property
    def place(self) -> Locality | None:
        """Where the worker is."""
        found = Locality(self.region, self.zone, self.cluster, self.node)
        return None if found == Locality() else found

    @property
    def preferred(self) -> Locality | None:
        """What distances are measured from; None: from where the worker is."""
        if self.prefer_zone is None and self.prefer_node is None:
            return None
        zone, node = self.prefer_zone or self.zone, self.prefer_node or self.node
        return Locality(self.region, zone, self.cluster, node)


class FrameAsk(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Frames of a stage, for a while. Asked again with the same `worker_slot_id` and `frame_index`
    in its cursor, a worker gets the frames that it holds by that question."""

    worker_id: OwnWorker
    requested_count: Annotated[int, msgspec.Meta(ge=1, le=FRAMES_MAX)] = 1
    lease_seconds: LeaseSeconds | None = None  # None: as the stage says
    wait_seconds: WaitSeconds = 1.0  # for the first frame
    cursor: dict[str, Any] = {}
    frame_policy: dict[str, Any] = {}  # the stage's own counts: it was recorded when it opened
    locality: ClaimLocality = ClaimLocality()
    command_id: CommandId | None = None


class LentFrame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frame in the hands of a worker; `work` is all that our own workers get."""

    frame_id: FrameId
    stage_id: StageId
    execution_id: ExecutionId
    status: str
    cursor: dict[str, Any]
    lease_until: Instant
    dsl_ref: str
    frame_policy: dict[str, Any]
    owner_worker: WorkerId
    attempt: int
    row_count: int
    parent_frame_id: FrameId | None = None
    claimed_event_id: EventId | None = None
    work: FrameWork


class FrameBeat(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    worker_id: OwnWorker
    lease_seconds: LeaseSeconds | None = None
    status: Literal["RUNNING"] = "RUNNING"
    attempt: Attempt | None = None  # which holder it is, for a worker that may hold a frame twice


class FrameKept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    lease_until: Instant | None
    next_action: NextAction


class RowEnd(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """How one row of a frame ended; rows are told in the order of the frame."""

    status: Literal["ok", "failed", "break", "skipped"] = "ok"
    value: Any = None
    error: Failure | None = None


class FrameCommit(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The end of a frame. Its rows are told in `outcomes`, or lie under `output_ref`; without
    either, all of them ended well and gave nothing."""

    worker_id: OwnWorker
    status: Literal["COMPLETED", "FAILED"] = "COMPLETED"
    row_count: RowCount | None = None  # None: as many as were told; of a failed frame none
    cursor: dict[str, Any] = {}
    output_ref: dict[str, Any] | None = None
    outcomes: tuple[RowEnd, ...] | None = None
    events_emitted: Annotated[int, msgspec.Meta(ge=0)] = 0
    error: Failure | None = None  # of a failed frame
    attempt: Attempt | None = None
    requested_count: Annotated[int, msgspec.Meta(ge=0, le=FRAMES_MAX)] = 0  # frames to go on with


class FrameDone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    ok: bool
    next_action: NextAction
    frames: tuple[LentFrame, ...] = ()
