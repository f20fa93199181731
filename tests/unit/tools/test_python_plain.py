"""What code gives becomes plain JSON, or the place that cannot is named."""

import json
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from noetl.tools import python_plain
from noetl.tools.python_plain import NotPlain, encoded

Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = "red"


@dataclass
class Row:
    name: str
    when: date


class Scalar:
    """As numpy has them."""

    def tolist(self) -> int:
        return 7


class Table:
    columns = ("a",)

    def to_dict(self, orient: str = "dict") -> Any:
        assert orient == "records"
        return [{"a": 1}]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(minutes=1), 60.0),
        (Decimal("1.50"), 1.5),
        (Decimal("12345678901234567890"), 12345678901234567890),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset(["a"]), ["a"]),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        (deque([1, 2]), [1, 2]),
        ({"a": 1}.keys(), ["a"]),
        (range(3), [0, 1, 2]),
        (Point(1, 2), [1, 2]),
        (Row("x", date(2026, 1, 2)), {"name": "x", "when": "2026-01-02"}),
        (Colour.RED, "red"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (Scalar(), 7),
        (Table(), [{"a": 1}]),
        ("ünï \u2028", "ünï \u2028"),
    ],
)
def test_what_stands_for_plain_data_is_converted(value: object, plain: object) -> None:
    assert json.loads(encoded({"here": value})) == {"here": plain}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"rows": [1, 2, 3, {"x": float("nan")}]}, "result.rows[3].x is nan; only finite"),
        ([float("-inf")], "result[0] is -inf; only finite"),
        ([Decimal("NaN")], "result[0] is nan; only finite"),
        ({"a": {"b": b"x"}}, "result.a.b is bytes; decode it"),
        (bytearray(b"x"), "result is bytes"),
        ({(1, 2): 3}, "result has the key (1, 2), a tuple; keys must be texts"),
        ({"a": object()}, "result.a is a object, which JSON cannot carry"),
        ([iter([1])], "result[0] is a list_iterator"),
        ([int], "result[0] is a type"),
        (["\ud800"], "result[0] is a text with half a character"),
        ({"\ud800": 1}, "result, in a key, is a text with half a character"),
        ([{1j}], "result[0][0] is a complex"),
    ],
)
def test_what_json_cannot_carry_is_named_with_its_place(value: object, message: str) -> None:
    with pytest.raises(NotPlain) as raised:
        encoded(value)

    assert str(raised.value).startswith(message)


def test_a_value_that_contains_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(NotPlain, match="contains itself"):
        encoded({"a": circle})


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(NotPlain, match="nested more than"):
        encoded(deep)


def test_a_result_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_plain, "RESULT_BYTES_MAX", 10)

    assert encoded("x" * 8) == b'"xxxxxxxx"'
    with pytest.raises(NotPlain, match="has 11 bytes as JSON, the limit is 10"):
        encoded("x" * 9)
