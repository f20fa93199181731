"""Which rows of an open loop are out, and which came back: the bookkeeping behind frames."""

from collections.abc import Iterable
from typing import Any

import msgspec

from noetl.domain.events import FrameCommitted, FrameDispatched, FrameStarted
from noetl.domain.events.values import Failure
from noetl.domain.execution import cursors
from noetl.domain.execution.names import all_assigned
from noetl.domain.execution.rows import FrameRow, StageRow
from noetl.domain.execution.state import (
    ExecutionState,
    FrameOutput,
    LoopWork,
    Unfinished,
    Window,
)
from noetl.kernel.ids import FrameId, LoopId


def window_as_cursor(window: Window) -> dict[str, Any]:
    """How events name the rows of a frame; nothing: they are yet to be claimed."""
    return {"first": window.first, "rows": window.rows} if window.rows else {}


def window_of(cursor: dict[str, Any]) -> Window | None:
    first, rows = cursor.get("first"), cursor.get("rows")
    return Window(first, rows) if isinstance(first, int) and isinstance(rows, int) else None


def handed_out(
    state: ExecutionState, stage: StageRow, frame_id: FrameId, event: FrameDispatched
) -> None:
    work = _work(state, stage.loop_id)
    window = window_of(event.cursor)
    if work is not None and work.mode == "cursor":
        cursors.begins(work, frame_id)
        window = window or Window(work.next_index, 0)
    if work is not None and window is not None:
        put_out(work, frame_id, window, event.ordinal)


def put_out(work: LoopWork, frame_id: FrameId, window: Window, ordinal: int) -> None:
    work.next_ordinal = max(work.next_ordinal, ordinal + 1)
    work.last_frame = frame_id
    work.out[frame_id] = window
    again = unfinished(work, window)
    if again is not None:
        work.unfinished.remove(again)
        work.earlier[frame_id] = again
        if again.claimed is not None:
            work.cursor.claimed[frame_id] = again.claimed
    elif window in work.returned:
        work.returned.remove(window)
    else:
        work.next_index = max(work.next_index, window.first + window.rows)


def handed_out_again(state: ExecutionState, row: FrameRow) -> None:
    """To another holder: of a cursor's frame it is another claim."""
    stage = state.stages.get(row.stage_id)
    work = None if stage is None else _work(state, stage.loop_id)
    if work is not None and work.mode == "cursor" and row.frame_id in work.out:
        cursors.begins(work, row.frame_id)


def claimed(state: ExecutionState, row: FrameRow, event: FrameStarted) -> None:
    stage = state.stages.get(row.stage_id)
    work = None if stage is None else _work(state, stage.loop_id)
    window = window_of(event.cursor)
    if work is not None and window is not None:
        cursors.claimed(work, row.frame_id, window, event)


def came_back(state: ExecutionState, row: FrameRow, event: FrameCommitted) -> None:
    """A frame may commit its first rows only; the rest is handed out again."""
    stage = state.stages.get(row.stage_id)
    work = None if stage is None else _work(state, stage.loop_id)
    window = None if work is None else work.out.pop(row.frame_id, None)
    if work is None or window is None:
        return
    done = min(event.row_count, window.rows)
    earlier = work.earlier.pop(row.frame_id, None)
    if work.mode == "cursor":
        cursors.ended(work, row.frame_id, window, done)
        if done == 0:
            return
    frames = (*(() if earlier is None else earlier.frames), row.frame_id)
    if done < window.rows:
        rest = Window(window.first + done, window.rows - done)
        if earlier is None and row.attempts <= 1:
            work.returned.append(rest)
        else:  # a holder before this one may have come further
            work.unfinished.append(_again(rest, frames, earlier))
    work.outputs.append(
        FrameOutput(
            window=Window(window.first, done),
            output_ref=event.output_ref,
            # Beside a reference the outcomes are a preview, and only the first frame's is shown.
            outcomes=event.outcomes if event.output_ref is None or _is_first(work, window) else [],
            writes=event.writes,
            duration_ms=_milliseconds(event.metrics),
            rows_failed=event.failed_rows,
            rows_broken=event.broken_rows,
            ordinal=row.ordinal if event.failed_rows else None,
            frames=frames if event.failed_rows else (),
        )
    )
    work.rows_failed += event.failed_rows
    work.rows_broken += event.broken_rows
    work.row_error = work.row_error or event.row_error
    if work.mode == "sequential":  # the next row sees what this one wrote
        state.ctx = all_assigned(state.ctx, event.writes)


def was_lost(state: ExecutionState, stage: StageRow, row: FrameRow, error: Failure) -> None:
    work = _work(state, stage.loop_id)
    window = None if work is None else work.out.pop(row.frame_id, None)
    if work is None or window is None:
        return
    earlier = work.earlier.pop(row.frame_id, None)
    shard = work.shards.pop(row.frame_id, None)
    journals = journals_of(row.frame_id, 1 if shard is None else shard.attempt)
    frames = (*(() if earlier is None else earlier.frames), *journals)
    work.frame_error = work.frame_error or error
    claimed = cursors.taken_from(work, row.frame_id)
    if window.rows:  # else it had claimed nothing
        again = _again(window, frames, earlier, row.ordinal)
        work.lost.append(msgspec.structs.replace(again, claimed=claimed))


def journals_of(frame_id: FrameId, shard_attempt: int) -> tuple[FrameId, ...]:
    """The names of a frame's journals, the oldest first: a shard has one per try."""
    later = (FrameId(f"{frame_id}.{each}") for each in range(2, shard_attempt + 1))
    return (frame_id, *later)


def unfinished(work: LoopWork, window: Window) -> Unfinished | None:
    return next((each for each in work.unfinished if each.window == window), None)


def taken_up(work: LoopWork, before: LoopWork) -> None:
    """A person's retry: what ended well stays, and everything else goes out again.

    Rows of a cursor that failed are among what ended: only new claims can bring more.
    """
    is_kept = work.mode == "cursor"
    work.outputs = [output for output in before.outputs if is_kept or not output.rows_failed]
    work.unfinished = [
        *before.unfinished,
        *before.lost,
        *(_failed(output) for output in before.outputs if output.rows_failed and not is_kept),
        *(_still_out(before, frame, window) for frame, window in before.out.items() if window.rows),
    ]
    work.returned = list(before.returned)
    work.has_dataset = before.has_dataset
    if is_kept:
        work.total, work.rows_failed = before.total, before.rows_failed
        was_stopped = before.policy.get("failure") == "fail_fast"  # and is to go on now
        work.row_error = None if was_stopped else before.row_error
    work.next_index, work.next_ordinal = before.next_index, before.next_ordinal
    work.rows_broken = sum(output.rows_broken for output in work.outputs)


def open_frames(work: LoopWork) -> tuple[FrameId, ...]:
    """Frames that are out, or whose rows may go out again."""
    again = [*work.unfinished, *work.lost, *work.earlier.values()]
    return (*work.out, *(frame for each in again for frame in each.frames))


def rows_of(outputs: Iterable[FrameOutput]) -> int:
    return sum(output.window.rows for output in outputs)


def in_order(work: LoopWork) -> list[FrameOutput]:
    """By index; what a cursor gave is in the order of its commits."""
    if work.mode == "cursor":
        return work.outputs
    return sorted(work.outputs, key=lambda output: output.window.first)


def _is_first(work: LoopWork, window: Window) -> bool:
    """Whether results begin with this frame's, as far as is known when it commits."""
    return not work.outputs if work.mode == "cursor" else window.first == 0


def _still_out(before: LoopWork, frame: FrameId, window: Window) -> Unfinished:
    again = _again(window, (frame,), before.earlier.get(frame))
    return msgspec.structs.replace(again, claimed=before.cursor.claimed.get(frame))


def _failed(output: FrameOutput) -> Unfinished:
    return Unfinished(
        window=output.window,
        frames=output.frames,
        ordinal=output.ordinal,
        output_ref=output.output_ref,
        outcomes=output.outcomes,
    )


def _again(
    window: Window,
    frames: tuple[FrameId, ...],
    earlier: Unfinished | None,
    ordinal: int | None = None,
) -> Unfinished:
    """How rows ended in an earlier frame still holds for those that no later one has ended."""
    again = Unfinished(window=window, frames=frames, ordinal=ordinal)
    if earlier is None:
        return again
    return msgspec.structs.replace(again, output_ref=earlier.output_ref, outcomes=earlier.outcomes)


def _work(state: ExecutionState, loop_id: LoopId | None) -> LoopWork | None:
    return None if loop_id is None else state.loop_work.get(loop_id)


def _milliseconds(metrics: dict[str, Any]) -> int:
    found = metrics.get("duration_ms")
    return found if isinstance(found, int) else 0
