"""How far a cursor has come: which rows its frames claimed, and whether there may be more."""

from noetl.domain.events import FrameStarted
from noetl.domain.execution.state import LoopWork, Window
from noetl.domain.work import ClaimedRows
from noetl.kernel.ids import FrameId


def begins(work: LoopWork, frame_id: FrameId) -> None:
    """A claim sees what frames have left that came back before it was handed out."""
    work.cursor.began[frame_id] = work.cursor.filled


def claimed(work: LoopWork, frame_id: FrameId, window: Window, event: FrameStarted) -> None:
    """The rows are the loop's from now on, unless it turns out that the claim was undone."""
    if frame_id not in work.out or event.transaction_id is None:
        return
    work.cursor.is_low = False
    work.out[frame_id] = window
    work.total += window.rows
    work.next_index = max(work.next_index, window.first + window.rows)
    work.cursor.claimed[frame_id] = ClaimedRows(
        transaction=event.transaction_id,
        row_count=window.rows,
        rows=event.rows if event.input_ref is None else None,
        reference=event.input_ref,
    )


def ended(work: LoopWork, frame_id: FrameId, window: Window, rows_done: int) -> None:
    """A claim that found nothing says that there is nothing, if nobody came back since it began:
    rows may leave more work behind. A claim that was undone leaves its own rows."""
    cursor = work.cursor
    began = cursor.began.pop(frame_id, None)
    cursor.claimed.pop(frame_id, None)
    if window.rows == 0:
        cursor.is_low = True
        cursor.is_dry = cursor.is_dry or began == cursor.filled
        return
    cursor.filled += 1
    cursor.is_dry = False
    if rows_done == 0:
        work.total -= window.rows


def taken_from(work: LoopWork, frame_id: FrameId) -> ClaimedRows | None:
    """The frame is lost; what it had claimed, for whoever takes it up."""
    work.cursor.began.pop(frame_id, None)
    return work.cursor.claimed.pop(frame_id, None)
