"""What `set` writes: dotted names into maps that are replaced, never changed in place."""

import copy
from typing import Any

import pytest

from noetl.domain.execution.names import NESTED_MAX, all_assigned, assigned
from noetl.kernel import canonical_json


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ({}, "total", {"total": 1}),
        ({"total": 0, "page": 2}, "total", {"total": 1, "page": 2}),
        ({}, "order.customer.id", {"order": {"customer": {"id": 1}}}),
        ({"order": {"paid": True}}, "order.id", {"order": {"paid": True, "id": 1}}),
        ({"order": "none yet"}, "order.id", {"order": {"id": 1}}),
        ({"order": [1, 2]}, "order.0", {"order": {"0": 1}}),
        ({"order": {"id": 2}}, "order", {"order": 1}),
        ({}, "", {"": 1}),
        ({}, ".", {"": 1}),
        ({}, ".id", {"": {"id": 1}}),
        ({}, "order.", {"order": 1}),
    ],
)
def test_a_path_gets_its_value(before: dict[str, Any], path: str, after: dict[str, Any]) -> None:
    assert assigned(before, path, 1) == after


def test_whoever_held_the_map_still_sees_the_old_one() -> None:
    held = {"order": {"customer": {"id": 1}}, "page": 2}
    as_it_was = copy.deepcopy(held)

    changed = all_assigned(held, {"order.customer.id": 2, "order.customer.name": "Ada", "page": 3})

    assert held == as_it_was
    assert changed == {"order": {"customer": {"id": 2, "name": "Ada"}}, "page": 3}


def test_what_was_not_written_is_shared() -> None:
    large = {"rows": list(range(1000))}
    changed = assigned({"large": large}, "small", 1)
    assert changed["large"] is large


def test_a_later_write_goes_into_an_earlier_one() -> None:
    writes = {"order": {"id": 7}, "order.paid": True}
    assert all_assigned({}, writes) == {"order": {"id": 7, "paid": True}}
    assert writes == {"order": {"id": 7}, "order.paid": True}


def test_a_path_of_any_length_can_be_written_and_frozen() -> None:
    names = ["n"] * 5_000
    changed = assigned({}, ".".join(names), 1)

    depth, inner = 1, changed
    while isinstance(inner.get("n"), dict):
        depth, inner = depth + 1, inner["n"]

    assert depth == NESTED_MAX < canonical_json.DEPTH_MAX
    assert list(inner.values()) == [1]
    canonical_json.check_plain(changed)
