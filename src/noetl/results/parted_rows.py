"""The rows of a table that lies in many parts: a part is opened where somebody looks."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from threading import Lock

from noetl.domain.events.values import ResultReference
from noetl.results.dataset import DatasetPart
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import Row

OpenPart = Callable[[ResultReference], StoredTable]

OPEN_PARTS_MAX = 4
"""Who goes through all rows needs one at a time; a few let neighbours take turns."""


class PartedRows:
    """A `RowSource`. Blocks while it reads, and holds the parts that were looked at last."""

    def __init__(self, parts: Sequence[DatasetPart], open_part: OpenPart) -> None:
        self._parts = [part for part in parts if part.rows]
        self._ends = list(accumulate(part.rows for part in self._parts))
        self._open = open_part
        self._opened: OrderedDict[int, StoredTable] = OrderedDict()
        self._lock = Lock()

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
        return self._part(at, part.reference).rows(first, last)

    def _part(self, at: int, reference: ResultReference) -> StoredTable:
        with self._lock:
            if at not in self._opened:
                self._opened[at] = self._open(reference)
            self._opened.move_to_end(at)
            if len(self._opened) > OPEN_PARTS_MAX:
                self._opened.popitem(last=False)  # not closed: somebody may be reading it
            return self._opened[at]
