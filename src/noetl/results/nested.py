"""Stored tables inside other contents: a pipeline's result names its tasks' tables, it does not
hold them again.

Null stands where the rows are, and `stored` beside the content says which table that is.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.results.tabular import Keys, replaced
from noetl.templates.table_rows import TableRows

STORED = "stored"
"""Beside `value`, `tasks` and `order`, where no name of a playbook stands."""


class NestedTable(msgspec.Struct, frozen=True, kw_only=True):
    at: Keys  # in the content that names it
    keys: Keys  # in its own
    reference: ResultReference


def without_tables(content: dict[str, Any]) -> dict[str, Any]:
    """The content to be stored; the same one where there is no table to leave out."""
    found = list(_tables(content, ()))
    for nested in found:
        content = replaced(content, nested.at, None)
    return {**content, STORED: msgspec.to_builtins(found)} if found else content


async def with_tables(
    content: dict[str, Any], rows_of: Callable[[NestedTable], Awaitable[Any]]
) -> dict[str, Any]:
    """The content again, with the rows that `rows_of` brings."""
    nested = msgspec.convert(content[STORED], list[NestedTable])
    content = {key: part for key, part in content.items() if key != STORED}
    for each in nested:
        content = replaced(content, each.at, await rows_of(each))
    return content


def _tables(value: Any, at: Keys) -> Iterator[NestedTable]:
    if isinstance(value, TableRows):
        assert value.reference is not None, "a table is stored before anything names it"
        yield NestedTable(at=at, keys=value.keys, reference=value.reference)
    elif type(value) is dict:
        for key, item in value.items():
            yield from _tables(item, (*at, key))
