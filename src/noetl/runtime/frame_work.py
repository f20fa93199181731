"""The work that the holder of a frame gets: its rows, its bounds, and what it may see."""

from typing import Any, NamedTuple

import msgspec

from noetl.decider.frames import row_concurrency
from noetl.domain.execution.rows import FrameRow
from noetl.domain.execution.state import LoopWork, Unfinished, Window
from noetl.domain.execution.windows import open_frames
from noetl.domain.naming.locator import Locality
from noetl.domain.work import FrameWork, RowOutcome, WorkerIdentity
from noetl.kernel.ids import FrameId, LoopId, StageId
from noetl.kernel.instant import Instant
from noetl.runtime.holders import CLAIM
from noetl.runtime.placing import Beside, source_of, told_of
from noetl.runtime.running import Running


class HandedFrame(NamedTuple):
    window: Window
    frame_id: FrameId
    ordinal: int
    attempt: int


class Lease(NamedTuple):
    seconds: float
    until: Instant


def frame_work(running: Running, work: LoopWork, frame: HandedFrame, lease: Lease) -> FrameWork:
    state, window = running.state, frame.window
    facts = running.facts[work.loop_id]
    if work.mode == "sequential":  # rows see what the rows before them wrote
        facts = msgspec.structs.replace(facts, ctx=state.ctx)
    items, earlier = work.collection, work.earlier.get(frame.frame_id)
    shard = work.shards.get(frame.frame_id)
    return FrameWork(
        scope=running.source.scope,
        execution_id=running.execution_id,
        playbook_digest=running.plan.digest,
        step=work.step,
        visit=work.visit,
        stage_id=work.stage_id or StageId(""),
        frame_id=frame.frame_id,
        ordinal=frame.ordinal,
        attempt=frame.attempt,
        lease_until=lease.until,
        lease_seconds=lease.seconds,
        mode=work.mode,
        first_index=window.first,
        row_count=window.rows,
        total=work.total,
        row_concurrency=row_concurrency(work),
        seconds_max=work.policy.get("max_seconds"),
        bytes_max=work.policy.get("max_bytes"),
        heartbeat_seconds=work.policy.get("heartbeat_seconds"),
        failure=work.policy.get("failure", "fail_fast"),
        facts=facts,
        rows=None if items is None else items[window.first : window.first + window.rows],
        collection=work.collection_ref,
        visit_attempt=work.attempt,
        after=() if earlier is None else earlier.frames,
        kept=() if earlier is None else _kept(earlier),
        kept_ref=None if earlier is None else earlier.output_ref,
        policy=work.policy if work.mode == "cursor" else {},
        claimed=work.cursor.claimed.get(frame.frame_id),
        open_frames=open_frames(work) if work.mode == "cursor" else (),
        shard_attempt=1 if shard is None else shard.attempt,
    )


def work_again(running: Running, row: FrameRow, lease_seconds: float) -> FrameWork | None:
    """The same work, for a holder that did not hear of it; None: it is not out any more."""
    stage = running.state.stages.get(row.stage_id)
    loop = LoopId("") if stage is None or stage.loop_id is None else stage.loop_id
    work = running.state.loop_work.get(loop)
    if work is None or row.frame_id not in work.out or row.lease_until is None:
        return None
    frame = HandedFrame(work.out[row.frame_id], row.frame_id, row.ordinal, row.attempts)
    return frame_work(running, work, frame, Lease(lease_seconds, row.lease_until))


def frame_source(running: Running, work: LoopWork) -> Locality | None:
    """Where the rows of the loop were made, if that is known."""
    return source_of(work.collection_ref, running.execution_id, running.places)


def beside_frame(running: Running, work: LoopWork, worker: WorkerIdentity) -> Beside:
    """What the event that hands a frame out says of its holder, and of the holder's question."""
    serves = worker.serves
    told = None if serves is None else serves.source
    source = frame_source(running, work) if told is None else told
    beside = told_of(running.source.scope, worker, source)
    if serves is None or serves.question is None:
        return beside
    asked: dict[str, Any] = {CLAIM: list(serves.question)}
    return Beside(beside.meta | asked, beside.annotations)


def _kept(earlier: Unfinished) -> tuple[RowOutcome, ...]:
    """Beside a reference they are a preview."""
    if earlier.output_ref is not None:
        return ()
    return msgspec.convert(earlier.outcomes, tuple[RowOutcome, ...])
