"""How many slots a stage asks its engine for, and how many frames each of them may hold."""

from noetl.decider.frames import frames_at_once, next_window
from noetl.domain.execution.state import LoopWork


def slots_for(work: LoopWork, slots_max: int) -> int:
    """As many as the engine has for one stage, and no more than there are frames for."""
    return max(1, min(slots_max, _frames_out(work)))


def frames_per_slot(work: LoopWork, slots_max: int) -> int:
    """So many that the slots together can have all that may be out, and no slot has two while
    another has none."""
    return max(1, _frames_out(work) // slots_for(work, slots_max))


def _frames_out(work: LoopWork) -> int:
    """At one time: as many as may be, or as the rows that are left will make."""
    at_once, window = frames_at_once(work), next_window(work)
    if window is None or not window.rows:  # a cursor's rows are not known before they are claimed
        return at_once
    left = -(-(work.total - window.first) // window.rows)
    return min(at_once, len(work.out) + left)
