"""What people ask of an execution in the wrong state is refused with what to do instead."""

from collections.abc import Callable

import pytest

from noetl.decider import requests
from noetl.decider.answers import Decided
from noetl.domain.events import ExecutionCancelled, ExecutionPaused
from noetl.domain.execution.state import ExecutionState
from noetl.domain.playbook.model import Playbook
from noetl.dsl.check import check
from noetl.kernel.errors import StateRefuses
from noetl.testing.given import given
from tests.unit.domain.happenings import STARTED

TEXT = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: one, path: one}
workflow: [{step: start, tool: {kind: noop}}]
"""


def playbook() -> Playbook:
    checked = check(TEXT).playbook
    assert checked is not None
    return checked


Ask = Callable[[ExecutionState], list[Decided]]

ASKED: dict[str, Ask] = {
    "cancel": lambda state: requests.cancel(state, None),
    "pause": lambda state: requests.pause(state, None),
    "resume": requests.resume,
    "retry": lambda state: requests.retry(state, playbook(), None, None),
}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("cancel", "is cancelled and cannot be cancelled"),
        ("pause", "is cancelled and cannot be paused"),
        ("resume", "cannot be resumed; run it again: noetl executions retry"),
    ],
)
def test_what_is_over_is_not_steered(asked: str, says: str) -> None:
    state = given(STARTED, ExecutionCancelled()).state
    with pytest.raises(StateRefuses, match=says):
        ASKED[asked](state)


def test_what_is_paused_is_resumed_and_not_retried() -> None:
    with pytest.raises(StateRefuses, match="is paused; resume it, or cancel it first"):
        ASKED["retry"](given(STARTED, ExecutionPaused()).state)


def test_what_runs_is_not_retried() -> None:
    with pytest.raises(StateRefuses, match="is still running; cancel it or wait"):
        ASKED["retry"](given(STARTED).state)


@pytest.mark.parametrize("asked", ["pause", "resume"])
def test_asking_for_what_is_so_already_changes_nothing(asked: str) -> None:
    events = (STARTED, ExecutionPaused()) if asked == "pause" else (STARTED,)
    assert ASKED[asked](given(*events).state) == []
