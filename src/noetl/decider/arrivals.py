"""Whether something may still come to a step over its arcs."""

from noetl.decider.view import View
from noetl.kernel.ids import StepName


def may_still_arrive(view: View, join: StepName) -> bool:
    """Whether something upstream of a join is running or about to."""
    upstream = view.plan.upstream.get(join)
    if upstream is None:
        return False
    state = view.state
    return any(name in upstream for name in state.open_steps) or any(
        name in upstream for name in state.tokens
    )
