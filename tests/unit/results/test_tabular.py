"""The table inside a result is found the same way by everybody."""

from typing import Any

import pytest

from noetl.kernel import canonical_json
from noetl.results.tabular import (
    TablePath,
    bytes_min,
    find_table,
    rows_at,
    with_table,
    without_table,
)

TWO = [{"a": 1}, {"a": 2}]
THREE = [{"b": 1}, {"b": 2}, {"b": 3}]


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ({"value": TWO}, ("value",)),
        ({"value": {"rows": TWO, "row_count": 2}}, ("value", "rows")),
        ({"tasks": {"x": TWO, "y": {"rows": THREE}}, "order": ["x", "y"]}, ("tasks", "y", "rows")),
        ({"loop": {"results": TWO, "count": 2}}, ("loop", "results")),
        ({"value": {"b": TWO, "a": [{"c": 1}, {"c": 2}]}}, ("value", "a")),
        ({"value": {"long": [1, 2, 3, 4], "rows": TWO}}, ("value", "rows")),
        ({"value": {"ragged": [{"a": 1}, {"a": 1}, {"b": 1}], "rows": TWO}}, ("value", "rows")),
    ],
)
def test_the_longest_list_of_uniform_records_is_the_table(
    content: dict[str, Any], keys: tuple[str, ...]
) -> None:
    assert find_table(content) == TablePath(keys)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [],
        [{"a": 1}],
        [{}, {}],
        [1, 2],
        [{"a": 1}, None],
        [{"a": 1}, [("a", 1)]],
        [{"a": 1}, {"a": 1, "b": 2}],
        [{"a": 1, "b": None}, {"a": 1}],
        [{1: "a"}, {1: "b"}],
        [TWO, TWO],
        [{"rows": TWO}],
    ],
)
def test_other_values_have_no_table(value: Any) -> None:
    assert find_table({"value": value}) is None


def test_rows_that_stand_in_two_places_are_one_table() -> None:
    same = {"value": {"rows": TWO, "command_0": {"rows": [{"a": 1}, {"a": 2}]}}}

    assert find_table(same) == TablePath(("value", "command_0", "rows"), (("value", "rows"),))


def test_rows_that_are_equal_to_python_alone_are_two_tables() -> None:
    alike = {"value": {"rows": [{"a": 1}, {"a": 0}], "others": [{"a": True}, {"a": 0.0}]}}

    assert find_table(alike) == TablePath(("value", "others"))


def test_a_content_is_its_shell_and_its_rows() -> None:
    content = {"value": {"rows": TWO, "again": TWO, "n": 2}}
    table = TablePath(("value", "rows"), (("value", "again"),))

    shell = without_table(content, table)

    assert shell == {"value": {"rows": None, "again": None, "n": 2}}
    assert rows_at(content, table) is TWO
    assert (
        with_table(shell, table, TWO, 2)
        == content
        == {"value": {"rows": TWO, "again": TWO, "n": 2}}
    )


def test_a_count_that_the_shell_could_not_know_is_filled_in() -> None:
    table = TablePath(("value", "rows"), counts=(("value", "row_count"),))

    assert with_table({"value": {"status": "ok"}}, table, TWO, 2) == {
        "value": {"status": "ok", "rows": TWO, "row_count": 2}
    }


def test_objects_nested_without_end_are_not_followed() -> None:
    endless: dict[str, Any] = {}
    endless["value"] = endless

    assert find_table(endless) is None


@pytest.mark.parametrize("rows", [TWO, [{"": "", "ä": None}] * 3, [{"a": 1, "bc": 2.5}] * 9])
def test_the_least_size_is_never_above_the_true_one(rows: list[dict[str, Any]]) -> None:
    assert bytes_min(rows) <= len(canonical_json.encode(rows))
