"""The table inside a result: where it stands, and the result without it.

A result's content is a JSON document. Its table is the longest list of uniform records that is
reached through objects alone; what stands around it is the shell.
"""

import operator
from collections.abc import Iterator, Mapping
from itertools import starmap
from typing import Any, NamedTuple

from noetl.kernel import canonical_json

ROWS_MIN = 2  # a list of one record is an object that happens to stand in a list

Keys = tuple[str, ...]
Row = dict[str, Any]


class TablePath(NamedTuple):
    """Where a table stands in its content."""

    keys: Keys
    echoes: tuple[Keys, ...] = ()  # where the same rows stand again, as in the results of SQL
    counts: tuple[Keys, ...] = ()  # where the number of rows stands that the shell could not know

    @property
    def places(self) -> tuple[Keys, ...]:
        return (self.keys, *self.echoes)


def find_table(content: Mapping[str, Any]) -> TablePath | None:
    """Of equally long lists, the first in order of their keys. Raises ValueNotPlain."""
    lists = sorted(_lists(content), key=lambda found: (-len(found[1]), found[0]))
    for position, (keys, rows) in enumerate(lists):
        if _is_table(rows):
            return TablePath(keys, tuple(_echoes(rows, lists[position + 1 :])))
    return None


def rows_at(content: Mapping[str, Any], table: TablePath) -> list[Row]:
    found: Any = content
    for key in table.keys:
        found = found[key]
    rows: list[Row] = found
    return rows


def without_table(content: Mapping[str, Any], table: TablePath) -> dict[str, Any]:
    """The shell: null stands where rows stood. The content is left as it is."""
    shell = dict(content)
    for keys in table.places:
        shell = replaced(shell, keys, None)
    return shell


def with_table(
    shell: Mapping[str, Any], table: TablePath, rows: Any, row_count: int
) -> dict[str, Any]:
    """The content again; the same list stands in every place of the table."""
    content = dict(shell)
    for keys in table.counts:
        content = replaced(content, keys, row_count)
    for keys in table.places:
        content = replaced(content, keys, rows)
    return content


def bytes_min(rows: list[Row]) -> int:
    """No canonical JSON of these rows is shorter: names, signs, and one byte for each value."""
    names = list(rows[0])
    per_row = len("{}") + sum(len(name) + len('"":0,') for name in names)
    return len(rows) * per_row


def replaced(content: Mapping[str, Any], keys: Keys, value: Any) -> dict[str, Any]:
    """A copy along the path only: what stands beside it is shared."""
    first, *rest = keys
    inner = replaced(content.get(first, {}), tuple(rest), value) if rest else value
    return {**content, first: inner}


def _lists(content: Mapping[str, Any]) -> Iterator[tuple[Keys, list[Any]]]:
    """Lists that could be tables. Deeper than the depth of plain values nothing is looked for."""
    pending: list[tuple[Keys, Any]] = [((), content)]
    while pending:
        keys, value = pending.pop()
        if type(value) is dict and len(keys) < canonical_json.DEPTH_MAX:
            pending += [((*keys, key), item) for key, item in value.items() if type(key) is str]
        elif type(value) is list and len(value) >= ROWS_MIN and type(value[0]) is dict:
            yield keys, value


def _is_table(rows: list[Any]) -> bool:
    """One pass in C for each question: this is asked of every large result."""
    if set(map(type, rows)) != {dict}:
        return False
    names = rows[0].keys()
    if not names or set(map(type, names)) != {str}:
        return False
    return all(map(names.__eq__, map(dict.keys, rows)))


def _echoes(rows: list[Row], others: list[tuple[Keys, list[Any]]]) -> Iterator[Keys]:
    """Equality is that of bytes: 1, 1.0 and true are equal to Python."""
    encoded: bytes | None = None
    for keys, other in others:
        if len(other) != len(rows):
            return
        if all(starmap(operator.is_, zip(rows, other, strict=True))):
            yield keys
        elif rows == other:
            encoded = encoded or canonical_json.encode(rows)
            if encoded == canonical_json.encode(other):
                yield keys
