"""Equal values are equal bytes, and what JSON cannot carry is refused by name."""

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from noetl.kernel import canonical_json
from noetl.kernel.errors import NotFinite, ValueNotPlain


class Colour(Enum):
    RED = "red"


class Measured(msgspec.Struct):
    value: float
    series: tuple[float, ...] = ()


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


GOLDEN: list[tuple[Any, bytes]] = [
    ({}, b"{}"),
    ([], b"[]"),
    (None, b"null"),
    ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
    ({"z": {"y": [True, False, None], "x": ""}}, b'{"z":{"x":"","y":[true,false,null]}}'),
    # Keys are sorted by code point, which UTF-16 order and a locale's order are not.
    (
        {"\U00010000": 5, "\uffff": 4, "é": 3, "z": 2, "Z": 1},
        b'{"Z":1,"z":2,"\xc3\xa9":3,"\xef\xbf\xbf":4,"\xf0\x90\x80\x80":5}',
    ),
    ({"é": 1, "e\u0301": 2}, b'{"e\xcc\x81":2,"\xc3\xa9":1}'),
    (["日本", "\u2028", "/"], b'["\xe6\x97\xa5\xe6\x9c\xac","\xe2\x80\xa8","/"]'),
    (['"', "\\", "\n", "\x00", "\x1f", "\x7f"], b'["\\"","\\\\","\\n","\\u0000","\\u001f","\x7f"]'),
    ([0, -1, 2**53 + 1, 2**63, 2**80], b"[0,-1,9007199254740993,9223372036854775808,"
        b"1208925819614629174706176]"),
    ([1.0, 0.1, 100000.0, 1e16, 1e22, 1e-7], b"[1.0,0.1,100000.0,1e16,1e22,1e-7]"),
    ([0.1 + 0.2, 1e300, 5e-324, -0.0], b"[0.30000000000000004,1e300,5e-324,-0.0]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"), GOLDEN, ids=[ascii(each)[:40] for each, _ in GOLDEN]
)
def test_bytes_are_the_same_for_ever(value: Any, expected: bytes) -> None:
    assert canonical_json.encode(value) == expected
    assert canonical_json.encode_recorded(value) == expected
    assert msgspec.json.decode(expected) == value


def test_the_order_in_which_keys_were_set_does_not_matter() -> None:
    one = {"a": 1, "b": {"c": [1, 2], "d": None}}
    other = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    assert canonical_json.encode(one) == canonical_json.encode(other)
    assert canonical_json.checksum(one) == canonical_json.checksum(other)


def test_the_order_of_a_list_does_matter() -> None:
    assert canonical_json.checksum([1, 2]) != canonical_json.checksum([2, 1])


def test_a_struct_is_written_as_the_object_it_stands_for() -> None:
    assert canonical_json.encode(Measured(0.5, (1.0,))) == b'{"series":[1.0],"value":0.5}'


def test_a_checksum_is_lowercase_sha256() -> None:
    empty_object = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert canonical_json.checksum({}) == empty_object
    assert canonical_json.FORM == "c1"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda value: value, "$"),
        (lambda value: [1, value], "$[1]"),
        (lambda value: {"a": [None, {"b": value}]}, "$.a[1].b"),
        (lambda value: {"a": (0.5, value)}, "$.a[1]"),
        (Measured, "$.value"),
        (lambda value: Measured(1.0, (2.0, value)), "$.series[1]"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_number_that_is_not_finite_is_refused_with_its_path(
    wrap: Any, path: str, value: float
) -> None:
    with pytest.raises(NotFinite) as refused:
        canonical_json.encode(wrap(value))
    assert refused.value.path == path
    assert str(refused.value).startswith(f"{path} is {value}")


def test_a_true_null_is_not_taken_for_a_number_that_is_not_finite() -> None:
    assert canonical_json.encode({"a": None, "b": "null"}) == b'{"a":null,"b":"null"}'


NOT_PLAIN: list[tuple[Any, str, str]] = [
    ({1: "x"}, "$", "keys must be text"),
    ({"a": {True: "x"}}, "$.a", "keys must be text"),
    ({None: 1}, "$", "keys must be text"),
    ({"a": (1, 2)}, "$.a", "is a tuple"),
    ({"a": b"x"}, "$.a", "is a bytes"),
    ({"a": [bytearray(b"x")]}, "$.a[0]", "is a bytearray"),
    ({"a": date(2026, 1, 1)}, "$.a", "is a date"),
    ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "$.a", "is a datetime"),
    ({"a": Decimal("1.5")}, "$.a", "is a Decimal"),
    ({"a": UUID(int=1)}, "$.a", "is a UUID"),
    ({"a": {1, 2}}, "$.a", "is a set"),
    ({"a": Colour.RED}, "$.a", "is a Colour"),
    ({"a": Measured(1.0)}, "$.a", "is a Measured"),
    ({"a": object()}, "$.a", "is a object"),
    ({"a": ["ok", "\ud800"]}, "$.a[1]", "lone surrogate"),
    ({"a": {"\udfff": 1}}, "the key '\\udfff' of $.a", "lone surrogate"),
    (nested(65), "$" + "[0]" * 65, "nested deeper than 64 levels"),
    (nested(5_000), "$" + "[0]" * 65, "nested deeper than 64 levels"),
]


@pytest.mark.parametrize(
    ("value", "path", "reason"), NOT_PLAIN, ids=[reason for _, _, reason in NOT_PLAIN]
)
def test_what_json_cannot_give_back_is_named_with_its_path(
    value: Any, path: str, reason: str
) -> None:
    with pytest.raises(ValueNotPlain) as refused:
        canonical_json.check_plain(value)
    assert refused.value.path == path
    assert reason in str(refused.value)


def test_what_is_plain_passes() -> None:
    canonical_json.check_plain(
        {"text": "é", "list": [1, -2.5, True, None], "deep": nested(63), "": {}}
    )
    canonical_json.check_plain({"ключ": [{"deep": nested(60)}, "\U0001f600"]})
    canonical_json.check_plain(nested(64))


@pytest.mark.parametrize(
    "value", [{"a": object()}, {"a": "\ud800"}, {"\ud800": 1}, {1: 2}, nested(100_000)],
    ids=["object", "surrogate", "surrogate key", "number as key", "depth"],
)  # fmt: skip
def test_what_the_encoder_cannot_write_is_named_too(value: Any) -> None:
    with pytest.raises(ValueNotPlain):
        canonical_json.encode(value)
