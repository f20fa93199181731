"""Whoever cancels a tree of executions may die on the way: the rest of the tree ends as well."""

from pathlib import Path

import pytest

from noetl.adapters.system.ids import SnowflakeIds
from tests.crash.cascade import DEPTH
from tests.crash.victims import Victims

pytestmark = pytest.mark.crash


def statuses(victims: Victims, home: Path, deadline: int, *, cascade: bool) -> list[str]:
    """After a cancel that was killed as soon as so many appends were durable."""
    order = {"home": str(home), "execution": SnowflakeIds(7).new_id(), "cascade": cascade}
    victims.start("cancel", **order, appends=deadline)
    assert "dying" in victims.hear(1)[0]
    victims.kill()
    victims.start("cancel", **order, appends=0)
    (word,) = victims.hear(1)
    victims.kill()
    found: list[str] = word["statuses"]
    return found


@pytest.mark.parametrize("deadline", range(1, DEPTH + 1))
def test_children_are_cancelled_by_whoever_starts_next(
    tmp_path: Path, victims: Victims, deadline: int
) -> None:
    found = statuses(victims, tmp_path / "home", deadline, cascade=True)

    assert found == ["CANCELLED"] * DEPTH


def test_children_that_were_to_go_on_go_on(tmp_path: Path, victims: Victims) -> None:
    found = statuses(victims, tmp_path / "home", 1, cascade=False)

    assert found == ["CANCELLED", "RUNNING", "RUNNING"]
