"""What a holder of a cursor's frame says before it commits its claim: which rows it has."""

from noetl.domain.events import FrameStarted
from noetl.domain.execution.state import LoopWork, Window
from noetl.domain.execution.windows import window_as_cursor
from noetl.domain.work import FrameStart, LeaseAnswer
from noetl.kernel.errors import ClaimLost
from noetl.runtime.reports import held_frame, loop_of, next_action
from noetl.runtime.turn import Turn, about_frame


def frame_started(turn: Turn, start: FrameStart) -> LeaseAnswer:
    """Said again it changes nothing. A frame claims once: other rows than are known are refused."""
    row = held_frame(turn, start.frame_id, start.attempt, start.worker_id)
    work = _cursor_work(turn, start)
    known, claimed = work.cursor.claimed.get(start.frame_id), start.claimed
    if known is None:
        started = FrameStarted(
            worker_id=start.worker_id,
            input_ref=claimed.reference,
            transaction_id=claimed.transaction,
            rows=claimed.rows or [],
            cursor=window_as_cursor(Window(work.next_index, claimed.row_count)),
        )
        turn.add(about_frame(started, start.frame_id, work.loop_id))
    elif known.transaction != claimed.transaction:
        raise ClaimLost(f"frame {start.frame_id}", "has claimed its rows already")
    return LeaseAnswer(
        next_action=next_action(turn),
        lease_until=row.lease_until,
        first_index=work.out[start.frame_id].first,
    )


def _cursor_work(turn: Turn, start: FrameStart) -> LoopWork:
    loop = loop_of(turn, start.frame_id)
    work = None if loop is None else turn.state.loop_work.get(loop)
    if work is None or work.mode != "cursor" or start.frame_id not in work.out:
        raise ClaimLost(f"frame {start.frame_id}", "has no rows to claim")
    return work
