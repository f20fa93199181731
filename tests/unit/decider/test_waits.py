"""When a wait is over, in the words that a playbook has for it."""

from typing import Any

import pytest

from noetl.decider.waits import WaitInvalid, due_of
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
