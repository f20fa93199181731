"""The rows of a table that lies in many parts: a part is opened where somebody looks."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import CellPlacement, physical_key
from noetl.domain.naming.result_name import parse_result_name
from noetl.kernel.errors import PayloadCorrupt, PayloadMissing
from noetl.ports.object_store import ObjectStore
from noetl.results.dataset import DatasetPart
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import Row

OpenPart = Callable[[ResultReference], StoredTable]


class PartedRows:
    """A `RowSource`. Blocks while it reads."""

    def __init__(self, parts: Sequence[DatasetPart], open_part: OpenPart) -> None:
        self._parts = [part for part in parts if part.rows]
        self._ends = list(accumulate(part.rows for part in self._parts))
        self._open = open_part
        self._opened: dict[int, StoredTable] = {}

    @property
    def length(self) -> int:
        return self._ends[-1] if self._ends else 0

    def row(self, index: int) -> Row:
        from_start = index + self.length if index < 0 else index
        if not 0 <= from_start < self.length:
            raise IndexError(index)
        at = bisect_right(self._ends, from_start)
        return self._between(at, from_start, from_start + 1)[0]

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        low, high, _ = slice(start, stop).indices(self.length)
        found: list[Row] = []
        for at, end in enumerate(self._ends):
            if low < high and low < end and end - self._parts[at].rows < high:
                found += self._between(at, low, high)
        return found

    def _between(self, at: int, low: int, high: int) -> list[Row]:
        part = self._parts[at]
        begin = self._ends[at] - part.rows
        first, last = max(low - begin, 0), min(high - begin, part.rows)
        if part.reference is None:
            return (part.outcomes or [])[first:last]
        if at not in self._opened:
            self._opened[at] = self._open(part.reference)
        return self._opened[at].rows(first, last)


def part_opener(objects: ObjectStore, placement: CellPlacement) -> OpenPart:
    """Files of this machine are mapped; others are fetched, and checked, when they are needed."""

    def open_part(reference: ResultReference) -> StoredTable:
        key = physical_key(parse_result_name(reference.uri), placement, "feather")
        try:
            path = objects.local_path(key)
            if path is not None:
                return StoredTable(path)
            found = objects.arrow_file(key)
            if found is None:
                raise PayloadMissing(reference.uri)
            with found.filesystem.open_input_file(found.path) as file:
                data: bytes = file.read()
        except FileNotFoundError as error:
            raise PayloadMissing(reference.uri) from error
        actual = hashlib.sha256(data).hexdigest()
        if actual != reference.sha256:
            expected = reference.sha256 or ""
            raise PayloadCorrupt(reference.uri, expected=expected, actual=actual)
        return StoredTable(data)

    return open_part


def is_reachable(objects: ObjectStore) -> bool:
    """Whether parts can be opened when they are needed, by whoever blocks for them."""
    return objects.local_path("any") is not None or objects.arrow_file("any") is not None
