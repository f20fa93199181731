"""The rows of a large SELECT: a list while they are few, a file of Arrow when they are many."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noetl.kernel.errors import EventInvalid
from noetl.ports.tool import ToolTable
from noetl.results.tabular import TablePath
from noetl.tools.failures import failed
from noetl.tools.sql_results import Outcome, combined, rows_outcome
from noetl.tools.sql_statements import Statement

if TYPE_CHECKING:
    from noetl.results.growing_table import GrowingTable

TABLE_BYTES_MIN = 4 * 1024 * 1024
"""Fewer bytes, as counted here, are a list."""

FETCH_ROWS = 2_048
"""So many are asked for at a time."""


class ResultRows:
    """What the last statement of a call gives. Blocks: for threads."""

    def __init__(
        self, folder: Path, statements: Sequence[Statement], before: Sequence[Outcome] = ()
    ) -> None:
        self.table: ToolTable | None = None  # once it is finished, if there were many
        self._folder = folder
        self._statements = statements
        self._before = before
        self._columns: list[str] = []
        self._positions: list[int] = []  # of two columns with one name, the last
        self._hints: Mapping[str, str] = {}
        self._rows: list[Sequence[Any]] = []
        self._size = 0
        self._growing: GrowingTable | None = None

    def follow(self, outcomes: Sequence[Outcome]) -> None:
        """What the statements before gave."""
        self._before = list(outcomes)

    def begin(self, columns: Sequence[str], hints: Mapping[str, str] | None = None) -> None:
        self._columns = list(columns)
        self._positions = sorted({name: at for at, name in enumerate(columns)}.values())
        self._hints = hints or {}

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Rows of plain values. Raises ToolFailed."""
        with _on_disk():
            if self._growing is not None:
                self._write(rows)
                return
            self._rows += rows
            self._size += sum(map(_weight, rows))
            if self._size >= TABLE_BYTES_MIN:
                self._grow()

    def add_columns(self, columns: Sequence[Any], byte_length: int) -> None:
        """The same as arrays of Arrow, or lists."""
        with _on_disk():
            if self._growing is None and self._size + byte_length >= TABLE_BYTES_MIN:
                self._grow()
            if self._growing is not None:
                self._growing.add([columns[at] for at in self._positions])
                return
        self._size += byte_length
        lists = [each if isinstance(each, list) else each.to_pylist() for each in columns]
        self._rows += zip(*lists, strict=True)

    def outcome(self) -> Outcome:
        """When all rows have come. Of many rows it says everything but the rows."""
        if self._growing is None:
            return rows_outcome(self._columns, self._rows)
        with _on_disk():
            path, row_count, byte_length, digest, _ = self._growing.close()
        self._growing = None
        self.table = ToolTable(
            path=path, row_count=row_count, byte_length=byte_length, schema_digest=digest
        )
        return {**self._shell(), "row_count": row_count}

    def discard(self) -> None:
        """Leave no file behind."""
        if self._growing is not None:
            self._growing.discard()
        if self.table is not None:
            self.table.path.unlink(missing_ok=True)

    def _shell(self) -> Outcome:
        return {"status": "ok", "columns": self._columns, "rows": None, "row_count": None}

    def _grow(self) -> None:
        from noetl.results.growing_table import GrowingTable  # noqa: PLC0415 - loads Arrow

        told = combined(self._statements, [*self._before, self._shell()], prefer_rows=True)
        again = ("value", f"command_{len(self._before)}")
        place = TablePath(
            ("value", "rows"),
            echoes=((*again, "rows"),),
            counts=(("value", "row_count"), (*again, "row_count")),
        )
        names = [self._columns[at] for at in self._positions]
        self._growing = GrowingTable(self._folder, names, {"value": told}, place, self._hints)
        rows, self._rows = self._rows, []
        self._write(rows)

    def _write(self, rows: Sequence[Sequence[Any]]) -> None:
        assert self._growing is not None
        if rows:
            self._growing.add([[row[at] for row in rows] for at in self._positions])


@contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"the rows cannot be written to a file: {error}; free space where workers run"
        raise failed("storage_quota", message, retryable=True) from error
    except EventInvalid as error:
        raise failed("schema", f"the rows hold what cannot be recorded: {error}") from error


def _weight(value: Any) -> int:
    """About the bytes of a value, a row of them included."""
    if isinstance(value, str):
        return 8 + len(value)
    if isinstance(value, list | tuple):
        return 8 + sum(map(_weight, value))
    if isinstance(value, dict):
        return 8 + sum(map(_weight, value.values())) + sum(map(len, value))
    return 8
