"""When a wait is over, in the words that a playbook has for it."""

from typing import Any

import msgspec
import pytest

from noetl.decider.waits import WaitInvalid, due_of, is_timer
from noetl.domain.playbook.model import Step
from noetl.domain.playbook.task import Task
from noetl.kernel.ids import StepName
from noetl.kernel.instant import Instant

NOW = Instant("2026-01-01T00:00:00.000000Z")


@pytest.mark.parametrize(
    ("parameters", "due"),
    [
        ({"seconds": 90}, "2026-01-01T00:01:30.000000Z"),
        ({"seconds": 0}, NOW),
        ({"seconds": "2.5"}, "2026-01-01T00:00:02.500000Z"),
        ({"seconds": "5m"}, "2026-01-01T00:05:00.000000Z"),
        ({"until": "2026-01-01T02:00:00+01:00"}, "2026-01-01T01:00:00.000000Z"),
        ({"until": "2025-01-01T00:00:00Z"}, NOW),
    ],
)
def test_it_is_over_when_it_says(parameters: dict[str, Any], due: str) -> None:
    assert due_of(parameters, NOW) == due


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"seconds": None},
        {"seconds": -1},
        {"seconds": True},
        {"seconds": "soon"},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"until": "tomorrow"},
        {"until": "2026-01-01T00:00:00"},
    ],
)
def test_what_is_no_time_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(WaitInvalid, match=r"`seconds` is|`until` is"):
        due_of(parameters, NOW)


WAITING = Step(name=StepName("rest"), tasks=(Task(name="rest", kind="wait"),))


def test_a_step_that_only_waits_needs_no_worker() -> None:
    assert is_timer(WAITING)


@pytest.mark.parametrize("more", [{"input": {"n": 1}}, {"timeout": 1.0}, {"emit": (None,)}])
def test_a_step_that_says_more_than_its_wait_needs_one(more: dict[str, Any]) -> None:
    assert not is_timer(msgspec.structs.replace(WAITING, **more))
