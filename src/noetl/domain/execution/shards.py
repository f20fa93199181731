"""Which shards of a fan-out are out, and how those that are back ended.

A shard is a frame of one row. While tries are left, a failed one stays out: nobody holds it, and
it goes to the next holder under the same names.
"""

from typing import Any

import msgspec

from noetl.domain.events import ShardDone, ShardEnqueued, ShardFailed
from noetl.domain.execution.state import FrameOutput, LoopWork, Shard, Window
from noetl.domain.execution.windows import journals_of, put_out
from noetl.kernel.ids import FrameId


def enqueued(work: LoopWork, frame_id: FrameId, event: ShardEnqueued) -> None:
    if frame_id not in work.out:
        put_out(work, frame_id, Window(event.iter_index, 1), event.iter_index)
    work.shards[frame_id] = Shard(attempt=event.shard_attempt)


def done(work: LoopWork, frame_id: FrameId, event: ShardDone) -> None:
    window = work.out.pop(frame_id, None)
    work.shards.pop(frame_id, None)
    work.earlier.pop(frame_id, None)
    if window is None:
        return
    result = event.result
    status = "ok" if result is None else result.status
    outcome: dict[str, Any] = {"index": window.first, "status": status}
    if result is not None and "value" in result.context:
        outcome["value"] = result.context["value"]
    reference = None if result is None else result.reference
    work.outputs.append(
        FrameOutput(
            window=window,
            output_ref=reference,
            outcomes=[outcome] if reference is None else [],
            writes=event.writes,
            rows_broken=int(status == "break"),
        )
    )
    work.rows_broken += int(status == "break")


def failed(work: LoopWork, frame_id: FrameId, event: ShardFailed) -> None:
    shard = work.shards.get(frame_id)
    if not event.final:
        if shard is not None:
            work.shards[frame_id] = msgspec.structs.replace(shard, has_failed=True)
        return
    window = work.out.pop(frame_id, None)
    earlier = work.earlier.pop(frame_id, None)
    work.shards.pop(frame_id, None)
    if window is None:
        return
    journals = journals_of(frame_id, 1 if shard is None else shard.attempt)
    error = msgspec.to_builtins(event.error)
    work.outputs.append(
        FrameOutput(
            window=window,
            outcomes=[{"index": window.first, "status": "failed", "error": error}],
            writes=event.writes,
            rows_failed=1,
            ordinal=window.first,
            frames=(*(() if earlier is None else earlier.frames), *journals),
        )
    )
    work.rows_failed += 1
    work.row_error = work.row_error or event.error
