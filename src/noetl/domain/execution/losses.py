"""How often open work was lost: what holders hand back when they leave in good order was not."""

from noetl.domain.execution.rows import CommandRow, FrameRow
from noetl.domain.execution.state import ExecutionState
from noetl.domain.work import HOLDERS_MAX
from noetl.kernel.ids import CommandId, FrameId


def handed_back(state: ExecutionState, name: CommandId | FrameId) -> None:
    state.handed_back[name] = state.handed_back.get(name, 0) + 1


def is_given_up(state: ExecutionState, row: CommandRow | FrameRow, losses_max: int) -> bool:
    """Whether its last holder was one too many; the names of holders are bounded in any case."""
    holders = row.claim if isinstance(row, CommandRow) else row.attempts
    name = row.command_id if isinstance(row, CommandRow) else row.frame_id
    return holders - state.handed_back.get(name, 0) >= losses_max or holders >= HOLDERS_MAX


def is_shard_given_up(state: ExecutionState, row: FrameRow, losses_max: int) -> bool:
    """Its holders count its tries, too: those that failed were no losses either."""
    lost = row.abandoned - state.handed_back.get(row.frame_id, 0)
    return lost >= losses_max or row.attempts >= HOLDERS_MAX
