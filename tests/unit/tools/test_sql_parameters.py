"""A text of SQL that comes again is not read again, and takes the values of its own call."""

from typing import Any

import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools.sql_parameters import bound_statements
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
