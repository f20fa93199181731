"""Which rows of an open loop are out, and which came back: the bookkeeping behind frames."""

from typing import Any

from noetl.domain.events import FrameCommitted, FrameDispatched
from noetl.domain.events.values import Failure
from noetl.domain.execution.names import all_assigned
from noetl.domain.execution.rows import FrameRow, StageRow
from noetl.domain.execution.state import ExecutionState, FrameOutput, LoopWork, Window
from noetl.kernel.ids import FrameId, LoopId


def window_as_cursor(window: Window) -> dict[str, Any]:
    """How `frame.dispatched` names the rows of a collection."""
    return {"first": window.first, "rows": window.rows}


def handed_out(
    state: ExecutionState, stage: StageRow, frame_id: FrameId, event: FrameDispatched
) -> None:
    work = _work(state, stage.loop_id)
    window = _window(event.cursor)
    if work is None or window is None:
        return
    work.next_ordinal = max(work.next_ordinal, event.ordinal + 1)
    work.out[frame_id] = window
    if window in work.returned:
        work.returned.remove(window)
    else:
        work.next_index = max(work.next_index, window.first + window.rows)


def came_back(state: ExecutionState, row: FrameRow, event: FrameCommitted) -> None:
    """A frame may commit its first rows only; the rest is handed out again."""
    stage = state.stages.get(row.stage_id)
    work = None if stage is None else _work(state, stage.loop_id)
    window = None if work is None else work.out.pop(row.frame_id, None)
    if work is None or window is None:
        return
    done = min(event.row_count, window.rows)
    if done < window.rows:
        work.returned.append(Window(window.first + done, window.rows - done))
    work.outputs.append(
        FrameOutput(
            window=Window(window.first, done),
            output_ref=event.output_ref,
            # Beside a reference the outcomes are a preview, and only the first frame's is shown.
            outcomes=event.outcomes if event.output_ref is None or window.first == 0 else [],
            writes=event.writes,
            duration_ms=_milliseconds(event.metrics),
        )
    )
    work.rows_failed += event.failed_rows
    work.rows_broken += event.broken_rows
    work.row_error = work.row_error or event.row_error
    if work.mode == "sequential":  # the next row sees what this one wrote
        state.ctx = all_assigned(state.ctx, event.writes)


def was_lost(state: ExecutionState, stage: StageRow, frame_id: FrameId, error: Failure) -> None:
    work = _work(state, stage.loop_id)
    if work is not None and work.out.pop(frame_id, None) is not None:
        work.frame_error = work.frame_error or error


def _work(state: ExecutionState, loop_id: LoopId | None) -> LoopWork | None:
    return None if loop_id is None else state.loop_work.get(loop_id)


def _window(cursor: dict[str, Any]) -> Window | None:
    first, rows = cursor.get("first"), cursor.get("rows")
    return Window(first, rows) if isinstance(first, int) and isinstance(rows, int) else None


def _milliseconds(metrics: dict[str, Any]) -> int:
    found = metrics.get("duration_ms")
    return found if isinstance(found, int) else 0
