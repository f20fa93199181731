"""The rows of a table that is too large to be a list: decoded where somebody looks."""

from collections.abc import Iterator
from typing import Any, Protocol

from noetl.domain.events.values import ResultReference
from noetl.templates.lookup import MISSING, Lookup

CHUNK_ROWS = 1_024
"""So many are decoded at a time while somebody goes through all of them."""


class RowSource(Protocol):
    """A table that is open."""

    @property
    def length(self) -> int: ...

    def row(self, index: int) -> dict[str, Any]:
        """From the end when negative. Raises IndexError."""
        ...

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """As a slice of the list would give them."""
        ...


class TableRows(Lookup):
    """Worth the list of its rows, and equal to it. `reference` says where the table is stored, and
    `keys` where in that content the rows stand; without it the table is not stored yet."""

    __slots__ = ("keys", "reference", "source")

    def __init__(
        self,
        source: RowSource,
        reference: ResultReference | None = None,
        keys: tuple[str, ...] = (),
    ) -> None:
        self.source = source
        self.reference = reference
        self.keys = keys

    def look_up(self, key: Any) -> Any:
        if not isinstance(key, int) or not -len(self) <= key < len(self):
            return MISSING
        return self.source.row(key)

    def listed(self) -> list[dict[str, Any]]:
        return self.source.rows()

    def __len__(self) -> int:
        return self.source.length

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), CHUNK_ROWS):
            yield from self.source.rows(start, start + CHUNK_ROWS)

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, int):
            return self.source.row(key)
        positions = range(*key.indices(len(self)))
        if positions.step == 1:
            return self.source.rows(positions.start, max(positions.start, positions.stop))
        return [self.source.row(position) for position in positions]

    def __contains__(self, item: object) -> bool:
        return any(row == item for row in self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, list | TableRows) or len(other) != len(self):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # like the list that it stands for

    def __add__(self, other: object) -> Any:
        if not isinstance(other, list | TableRows):
            return NotImplemented
        return [*self, *other]

    def __radd__(self, other: object) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        return f"TableRows({len(self)} rows)"


def as_lists(value: Any) -> Any:
    """Plain data: the value itself where it holds no table. Takes the memory that lists take."""
    if isinstance(value, TableRows):
        return value.listed()
    if type(value) is dict:
        items = {key: as_lists(item) for key, item in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    if type(value) is list and value and has_tables(value):
        return [as_lists(item) for item in value]
    return value


def has_tables(value: Any) -> bool:
    """Tables stand where they were put: in objects, and in short lists that templates made."""
    if isinstance(value, TableRows):
        return True
    if type(value) is dict:
        return any(map(has_tables, value.values()))
    if type(value) is list and len(value) <= CHUNK_ROWS:
        return any(map(has_tables, value))
    return False
