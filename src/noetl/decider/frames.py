"""Which rows of an open loop go out next, and how many at once."""

from noetl.decider.loops import is_halted, may_claim
from noetl.domain.execution.state import LoopWork, Window
from noetl.domain.execution.windows import unfinished

ROWS_MIN = 50
ROWS_MAX = 5_000
FRAME_SECONDS = 2.0
"""What a frame should take when the author named no size: long enough to be cheap, short enough
to lose little."""

FRAMES_AT_ONCE = 2


def next_window(work: LoopWork) -> Window | None:
    """The rows of the next frame, or None when all that may be out is out.

    A frame of a cursor has none before it has claimed some; while one that is out may leave more
    work behind, and there is none otherwise, nobody is sent to look. After a claim that found
    nothing one frame looks for all of them, until it finds something.
    """
    if work.stage_id is None or is_halted(work) or len(work.out) >= frames_at_once(work):
        return None
    again = [*work.returned, *(each.window for each in work.unfinished)]
    if again:
        return min(again, key=lambda window: window.first)
    if work.mode == "cursor":
        return Window(work.next_index, 0) if may_claim(work) and not _is_looked_for(work) else None
    left = work.total - work.next_index
    return Window(work.next_index, _next_rows(work, left)) if left > 0 else None


def _is_looked_for(work: LoopWork) -> bool:
    return work.cursor.is_low and any(window.rows == 0 for window in work.out.values())


def _next_rows(work: LoopWork, left: int) -> int:
    """The last frames share what is left, so that none of them runs on alone; few rows are shared
    by all frames that may be out. There are no more frames for that than there would be anyway."""
    rows = frame_rows(work)
    if work.mode != "parallel" or "max_rows" in work.policy:
        return min(rows, left)
    at_once = frames_at_once(work)
    if work.total > ROWS_MIN or "row_concurrency" in work.policy:  # else they are one frame
        rows = min(rows, max(_share(work), _parts(work.total, at_once)))
    frames = _parts(left, rows)
    return rows if frames > at_once else _parts(left, frames)


def _parts(rows: int, size: int) -> int:
    return -(-rows // size)


def ordinal_of(work: LoopWork, window: Window) -> int:
    """A whole frame that goes out again keeps its number: its effects go by it."""
    again = unfinished(work, window)
    return work.next_ordinal if again is None or again.ordinal is None else again.ordinal


def frames_at_once(work: LoopWork) -> int:
    """Frames out at one time; their rows together stay within `max_in_flight`, which for a cursor
    counts frames, as for a fan-out, whose frames have one row."""
    in_flight = int(work.policy.get("max_in_flight", 1))
    if work.mode in ("cursor", "fanout"):
        return in_flight
    given = work.policy.get("row_concurrency")
    if given is not None:
        return max(1, in_flight // int(given))
    return 1 if work.mode == "sequential" else min(FRAMES_AT_ONCE, in_flight)


def row_concurrency(work: LoopWork) -> int:
    """Rows at once within the frame that was handed out last."""
    in_flight = int(work.policy.get("max_in_flight", 1))
    given = work.policy.get("row_concurrency")
    if work.mode == "fanout":
        return 1
    if work.mode == "cursor":
        return int(given or 1)
    if given is None and len(work.out) <= 1 and next_window(work) is None:
        return in_flight  # no other frame is out, and none will be
    return _share(work)


def _share(work: LoopWork) -> int:
    """Rows at once of each of the frames that may be out."""
    in_flight = int(work.policy.get("max_in_flight", 1))
    given = work.policy.get("row_concurrency")
    if given is not None:
        return min(int(given), in_flight)
    return max(1, in_flight // frames_at_once(work))


def frame_rows(work: LoopWork) -> int:
    """As the author said, else by what the last frame took; a shard is one row."""
    if work.mode == "fanout":
        return 1
    given = work.policy.get("max_rows")
    if given is not None:
        return int(given)
    if not work.outputs:
        return ROWS_MIN
    last = work.outputs[-1]
    if last.duration_ms <= 0:
        return min(ROWS_MAX, max(ROWS_MIN, last.window.rows * 4))
    aimed = int(last.window.rows * FRAME_SECONDS * 1000 / last.duration_ms)
    # A single measurement may be a fluke, so growth is bounded.
    return max(ROWS_MIN, min(ROWS_MAX, aimed, last.window.rows * 4))
