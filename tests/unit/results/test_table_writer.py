"""Batches one by one become the file that the whole table would have become."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noetl.kernel.errors import NotFinite, ValueNotPlain
from noetl.results import batch_file, columns, feather
from noetl.results.feather import encode_table
from noetl.results.stored_table import StoredTable
from noetl.results.table_writer import TableFile, TableWriter
from noetl.results.tabular import TablePath, find_table

ROWS = [{"id": number, "name": f"näme {number}" if number % 3 else None} for number in range(1_000)]
SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def batch_of(rows: list[dict[str, Any]]) -> Any:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def written(path: Path, rows: list[dict[str, Any]], size: int) -> TableFile:
    with TableWriter(path, SCHEMA) as writer:
        for start in range(0, len(rows), size):
            writer.write(batch_of(rows[start : start + size]))
        return writer.close()


@pytest.mark.parametrize("size", [1, 7, 100, 333, 999, 1_000])
def test_the_bytes_are_those_of_the_table_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(feather, "BATCH_ROWS", 100)
    monkeypatch.setattr(batch_file, "BATCH_ROWS", 100)
    content = {"value": ROWS}
    table = find_table(content)
    assert table is not None
    encoded = encode_table(content, table)
    # The shell of a content has null where its table was; so must the writer's.
    with TableWriter(tmp_path / "t", SCHEMA, {"value": None}) as writer:
        for start in range(0, len(ROWS), size):
            writer.write(batch_of(ROWS[start : start + size]))
        file = writer.close()

    assert file.path.read_bytes() == encoded.data
    assert file[:4] == (tmp_path / "t", 1_000, len(encoded.data), encoded.schema_digest)


def test_what_waits_in_memory_is_bounded_by_bytes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_file, "BATCH_BYTES_MAX", 2_000)

    file = written(tmp_path / "t", ROWS, 50)

    with StoredTable(file.path) as stored:
        batches = list(stored.batches())
        assert len(batches) > 5
        assert all(batch.nbytes <= 2_000 for batch in batches)
        assert stored.whole() == {"value": ROWS}


def test_the_shell_goes_first_and_the_count_is_filled_in(tmp_path: Path) -> None:
    table = TablePath(("value", "rows"), counts=(("value", "row_count"),))
    with TableWriter(tmp_path / "t", SCHEMA, {"value": {"status": "ok"}}, table) as writer:
        writer.write(batch_of(ROWS))
        file = writer.close()

    with StoredTable(file.path) as stored:
        assert stored.whole() == {"value": {"status": "ok", "rows": ROWS, "row_count": 1_000}}
        assert stored.look_into(("value", "row_count")) == 1_000


def test_a_table_without_rows_is_a_table(tmp_path: Path) -> None:
    file = written(tmp_path / "t", [], 1)

    with StoredTable(file.path) as stored:
        assert (file.row_count, stored.length, stored.whole()) == (0, 0, {"value": []})


def test_other_types_of_numbers_and_columns_of_json_are_read_as_plain_values(
    tmp_path: Path,
) -> None:
    fields = [
        pa.field("small", pa.int8()),
        pa.field("half", pa.float32()),
        columns.json_field("any"),
    ]
    schema = pa.schema(fields, {"pandas": "not ours"})
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, None], pa.int8()), pa.array([0.5, 1], pa.float32()), pa.array(["[1]", None])],
        schema=schema,
    )
    with TableWriter(tmp_path / "t", schema) as writer:
        writer.write(batch)
        file = writer.close()

    with StoredTable(file.path) as stored:
        assert b"pandas" not in stored.schema.metadata
        assert stored.rows() == [
            {"small": 1, "half": 0.5, "any": [1]},
            {"small": None, "half": 1.0, "any": None},
        ]


def test_leaving_without_closing_removes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with TableWriter(path, SCHEMA) as writer, pytest.raises(ValueNotPlain):
        writer.write(batch_of(ROWS).select(["id"]))

    assert not path.exists()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([("at", pa.timestamp("us"))], r"the column 'at' is a timestamp\[us\]; cast it to text"),
        ([("a", pa.list_(pa.binary()))], "the column 'a'"),
        ([("a", pa.struct({"b": pa.decimal128(5, 2)}))], "the column 'a'"),
        ([("a", pa.dictionary(pa.int32(), pa.string()))], "the column 'a'"),
        ([("a", pa.int64()), ("a", pa.string())], "two columns 'a'; rename one"),
        ([], "has no columns"),
    ],
)
def test_columns_that_would_not_be_plain_are_refused(
    tmp_path: Path, fields: list[Any], reason: str
) -> None:
    with pytest.raises(ValueNotPlain, match=reason):
        TableWriter(tmp_path / "t", pa.schema(fields))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, float("nan")]),
        pa.array([float("inf"), None]),
        pa.array([[1.0], [float("nan")]]),
        pa.array([{"a": None}, {"a": [float("-inf")]}]),
    ],
)
def test_what_is_not_finite_is_refused(tmp_path: Path, column: Any) -> None:
    batch = pa.record_batch({"x": column})
    with TableWriter(tmp_path / "t", batch.schema) as writer:
        with pytest.raises(NotFinite, match="column 'x'"):
            writer.write(batch)
        assert writer.close().row_count == 0


def test_a_batch_of_another_table_is_refused(tmp_path: Path) -> None:
    with (
        TableWriter(tmp_path / "t", SCHEMA) as writer,
        pytest.raises(ValueNotPlain, match="other columns"),
    ):
        writer.write(pa.record_batch({"id": [1]}))
