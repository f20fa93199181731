"""Tables whose columns are known only as their rows come."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noetl.results.growing_table import GrowingTable
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import TablePath

PLACE = TablePath(("value",))


def grown(folder: Path, *batches: list[Any], **hints: str) -> tuple[str, list[Any]]:
    """The type of the only column, and its values read back."""
    table = GrowingTable(folder, ["x"], {"value": None}, PLACE, hints)
    for batch in batches:
        table.add([batch])
    path = table.close().path
    with StoredTable(path) as stored:
        field = stored.schema.field("x")
        kind = "json" if field.metadata else str(field.type)
        values = [row["x"] for row in stored.rows()]
    path.unlink()
    assert os.listdir(folder) == []
    return kind, values


@pytest.mark.parametrize(
    ("batches", "kind"),
    [
        ([[1, 2], [3]], "int64"),
        ([[None], [None]], "null"),
        ([[None, None], ["a"], [None]], "string"),
        ([[1], [2.5]], "json"),
        ([["a"], [None], [{"b": 1}], ["c"]], "json"),
        ([[None], [1], ["x"], [None]], "json"),
        ([[[1]], [["a"]], [None]], "json"),
        ([[{"a": 1}], [{"a": 2}]], "struct<a: int64>"),
        ([[2**64], [1]], "json"),
        ([[True], [1], [1.0]], "json"),
    ],
)
def test_values_read_back_as_they_were_whatever_comes_later(
    tmp_path: Path, batches: list[list[Any]], kind: str
) -> None:
    found, values = grown(tmp_path, *batches)
    expected = [value for batch in batches for value in batch]
    assert (found, values) == (kind, expected)
    assert list(map(type, values)) == list(map(type, expected))


def test_a_hint_is_the_type_of_a_column_that_begins_with_nothing(tmp_path: Path) -> None:
    assert grown(tmp_path, [None], [5], x="int64") == ("int64", [None, 5])
    assert grown(tmp_path, [None], ["no"], x="int64") == ("json", [None, "no"])


def test_arrays_of_arrow_and_lists_meet_in_one_column(tmp_path: Path) -> None:
    assert grown(tmp_path, [1], pa.array([2, 3])) == ("int64", [1, 2, 3])
    mixed = grown(tmp_path, pa.array([1], pa.int32()), ["NaN"], pa.array([2], pa.int32()))
    assert mixed == ("json", [1, "NaN", 2])


def test_a_discarded_table_leaves_no_file(tmp_path: Path) -> None:
    table = GrowingTable(tmp_path, ["x"], {"value": None}, PLACE)
    table.discard()
    table.add([[1]])
    table.add([["a"]])
    table.discard()
    assert os.listdir(tmp_path) == []
