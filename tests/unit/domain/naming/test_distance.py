"""How far places are apart, by what they have in common."""

import pytest

from noetl.domain.naming.distance import Distance, Preference, distance, is_within, rank
from noetl.domain.naming.locator import Locality

HERE = Locality("eu", "eu-a", "blue", "n1")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (HERE, "node"),
        (Locality(node="n1"), "node"),
        (Locality("eu", "eu-a", "blue", "n2"), "zone"),
        (Locality("eu", "eu-a", "green", "n1"), "zone"),
        (Locality("eu", "eu-b", "blue", "n1"), "region"),
        (Locality("us", "eu-a", "blue", "n1"), "cluster"),
        (Locality("us", "us-a", "green", "n1"), "any"),
        (Locality(), "any"),
    ],
)
def test_the_nearest_thing_in_common_is_the_distance(other: Locality, expected: Distance) -> None:
    assert distance(HERE, other) == expected
    assert distance(other, HERE) == expected


def test_what_nobody_says_is_near_to_nothing() -> None:
    assert distance(Locality(), Locality()) == "any"


@pytest.mark.parametrize(
    ("reached", "bound", "expected"),
    [
        ("node", "zone", True),
        ("zone", "zone", True),
        ("region", "zone", False),
        ("any", "any", True),
    ],
)
def test_a_bound_takes_everything_that_is_nearer(
    reached: Distance, bound: Distance, expected: bool
) -> None:
    assert is_within(reached, bound) is expected


@pytest.mark.parametrize(
    ("preference", "order"),
    [("node", [0, 1, 2, 4]), ("zone", [1, 1, 2, 4]), ("region", [2, 2, 2, 4]), ("any", [4] * 4)],
)
def test_what_is_nearer_than_preferred_is_no_better(
    preference: Preference, order: list[int]
) -> None:
    reached: list[Distance] = ["node", "zone", "region", "any"]
    assert [rank(each, preference) for each in reached] == order
