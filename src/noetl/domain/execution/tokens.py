"""Tokens on steps: what is on its way is in the state, so nothing is lost between two appends."""

from collections.abc import Iterable

from noetl.domain.execution.state import ExecutionState
from noetl.kernel.ids import StepName


def put_tokens(state: ExecutionState, source: StepName, targets: Iterable[StepName]) -> None:
    for target in targets:
        state.tokens.setdefault(target, []).append(source)


def take_tokens(state: ExecutionState, step: StepName, sources: Iterable[StepName]) -> None:
    waiting = state.tokens.get(step)
    if waiting is None:
        return
    for source in sources:
        if source in waiting:
            waiting.remove(source)
    if not waiting:
        del state.tokens[step]
