"""How many slots a stage asks its engine for, and how many frames each of them may hold."""

from noetl.decider.frames import frames_at_once
from noetl.domain.execution.state import LoopWork


def slots_for(work: LoopWork, slots_max: int) -> int:
    """As many as the engine has for one stage, and no more than frames may be out at once."""
    return max(1, min(slots_max, frames_at_once(work)))


def frames_per_slot(work: LoopWork, slots_max: int) -> int:
    """So many that the slots together can have all that may be out, and no slot has two while
    another has none."""
    return max(1, frames_at_once(work) // slots_for(work, slots_max))
