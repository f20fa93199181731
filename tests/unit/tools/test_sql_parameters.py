"""A text of SQL that comes again is not read again, and takes the values of its own call."""

from typing import Any

import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools.sql_parameters import _Binding, bound_statements
from noetl.tools.sql_statements import DUCKDB, POSTGRES, SQLITE, TEXT_KEPT_CHARS_MAX, Dialect

TEXT = "INSERT INTO t VALUES (:a, ':a', :b, :a) -- :b\n; SELECT '?', %(b)s::text"


async def bound(text: str, dialect: Dialect, params: Any) -> list[tuple[str, tuple[Any, ...]]]:
    found = await bound_statements({"query": text, "params": params}, dialect)
    return [(each.text, each.arguments) for each in found]


@pytest.mark.parametrize("padding", ["", " " * TEXT_KEPT_CHARS_MAX], ids=["kept", "too long"])
async def test_the_same_text_takes_other_values_each_time(padding: str) -> None:
    for a, b in ((1, 2), ("x", None)):
        assert await bound(TEXT + padding, POSTGRES, {"a": a, "b": b}) == [
            ("INSERT INTO t VALUES ($1, ':a', $2, $1) -- :b", (a, b)),
            ("SELECT '?', $1::text", (b,)),
        ]


async def test_the_same_text_is_another_one_to_another_database() -> None:
    assert await bound("SELECT ?, $1", SQLITE, [1, 2]) != await bound(
        "SELECT ?, $1", DUCKDB, [1, 2]
    )


async def test_a_name_that_one_call_has_not_is_left_alone_there_only() -> None:
    assert await bound("SELECT :a, :b", SQLITE, {"a": 1}) == [("SELECT ?, :b", (1,))]
    assert await bound("SELECT :a, :b", SQLITE, {"a": 1, "b": 2}) == [("SELECT ?, ?", (1, 2))]
    with pytest.raises(ToolFailed, match="asks for %s"):
        await bound("SELECT %s, %s", SQLITE, [1])


@pytest.mark.parametrize("dialect", [POSTGRES, SQLITE, DUCKDB], ids=lambda each: each.name)
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "SELECT 1",
        "SELECT :a + :b, :a::int, '%(a)s', \"b\".a[:b]",
        "SELECT %(a)s, :b, $a, $b, @a, :missing, ?, %s, $1, a::b",
        "SELECT :s, $1, :ab, :a_b, :abc",
    ],
)
async def test_named_values_stand_where_each_placeholder_asks_for_them(
    dialect: Dialect, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts whose names are kept, and the way for all others, agree."""
    values = {"a": 1, "b": None, "s": "x", "1": 2, "": 3, "ab": 4, "a_b": 5, "abc": 6}
    for given in (values, {**values, "missing": 7}):
        kept = await bound(text, dialect, given)
        with monkeypatch.context() as patch:
            patch.setattr(_Binding, "bind", _Binding._bind_each)
            assert kept == await bound(text, dialect, given)
