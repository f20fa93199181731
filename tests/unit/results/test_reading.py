"""Stored results are read where they are asked."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from noetl.results import feather
from noetl.results.errors import ResultUnreadable
from noetl.results.feather import encode_table
from noetl.results.reading import open_stored
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import find_table
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from noetl.templates.lookup import MISSING

ROWS = [{"x": number, "deep": {"tags": [f"t{number}", 1]}} for number in range(1_200)]
CONTENT: dict[str, Any] = {
    "value": {
        "status": "ok",
        "columns": ["x", "deep"],
        "rows": ROWS,
        "row_count": 1_200,
        "command_0": {"rows": ROWS, "row_count": 1_200},
    }
}


def encoded(content: dict[str, Any]) -> bytes:
    table = find_table(content)
    assert table is not None
    return encode_table(content, table).data


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredTable:
    monkeypatch.setattr(feather, "BATCH_ROWS", 500)
    path = tmp_path / "table.feather"
    path.write_bytes(encoded(CONTENT))
    return StoredTable(path)


def test_one_row_and_one_cell_are_read_from_their_batch(stored: StoredTable) -> None:
    assert stored.length == 1_200
    assert len(list(stored.batches())) == 3
    for index in (0, 499, 500, 1_100, 1_199, -1, -1_200):
        assert stored.row(index) == ROWS[index]
        assert stored.cell(index, "x") == ROWS[index]["x"]
    assert stored.cell(1_100, "deep") == {"tags": ["t1100", 1]}


def test_past_the_end_there_is_nothing(stored: StoredTable) -> None:
    for index in (1_200, -1_201):
        with pytest.raises(IndexError):
            stored.row(index)
    with pytest.raises(KeyError):
        stored.cell(0, "y")
    assert stored.rows(1_200) == []


def test_a_range_may_reach_over_batches(stored: StoredTable) -> None:
    assert stored.rows(400, 1_100) == ROWS[400:1_100]
    assert stored.rows() == ROWS
    assert stored.whole() == CONTENT


@pytest.mark.parametrize("path", [("rows",), ("command_0", "rows")])
def test_keys_lead_through_the_shell_into_rows(stored: StoredTable, path: tuple[str, ...]) -> None:
    place = ("value", *path)
    assert stored.look_into((*place, 1_100, "x")) == 1_100
    assert stored.look_into((*place, -1, "deep", "tags", 0)) == "t1199"
    assert stored.look_into((*place, 3)) == ROWS[3]
    assert stored.look_into(place) == ROWS
    assert stored.look_into((*place, 1_200)) is MISSING
    assert stored.look_into((*place, 0, "y", "z")) is MISSING
    assert stored.look_into((*place, 0, 0)) is MISSING
    assert stored.look_into((*place, "x")) is MISSING


def test_keys_beside_the_table_read_no_row(
    stored: StoredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stored.look_into(("value", "command_0")) == CONTENT["value"]["command_0"]
    assert stored.look_into(()) == CONTENT

    monkeypatch.setattr(StoredTable, "rows", None)

    assert stored.look_into(("value", "columns", 1)) == "deep"
    assert stored.look_into(("value", "command_0", "row_count")) == 1_200
    assert stored.look_into(("value", "missing", 1)) is MISSING
    assert stored.look_into(("tasks",)) is MISSING


def test_what_was_read_stays_when_the_file_is_closed(stored: StoredTable) -> None:
    with stored:
        rows = stored.rows(0, 3)

    assert rows == ROWS[:3]


def test_closing_lets_go_of_the_bytes_it_was_given() -> None:
    view = memoryview(encoded(CONTENT))
    stored = StoredTable(view)
    assert stored.length == 1_200

    stored.close()
    stored.close()

    view.release()


@pytest.mark.parametrize("as_path", [True, False])
def test_a_result_is_opened_by_its_media_type(tmp_path: Path, as_path: bool) -> None:
    path = tmp_path / "result"
    for data, media_type in (
        (encoded(CONTENT), FEATHER_MEDIA_TYPE),
        (b'{"value":{"status":"ok","rows":[{"x":3}]}}', JSON_MEDIA_TYPE),
    ):
        path.write_bytes(data)
        stored = open_stored(path if as_path else memoryview(data), media_type)
        assert stored.look_into(("value", "status")) == stored.whole()["value"]["status"] == "ok"
        assert stored.look_into(("value", "rows", 0, "y")) is MISSING
        assert stored.look_into(("value", "rows", 0, "x")) in (0, 3)
        stored.close()


def plain_arrow(metadata: dict[str, str] | None = None) -> bytes:
    batch = pa.record_batch({"x": [1, 2]}).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not a table"),
        (b"ARROW1", "is not a table"),
        (encoded(CONTENT)[:-200], "is not a table"),
        (plain_arrow(), "does not say who wrote it"),
        (plain_arrow({"noetl.encoder": "noetl-feather/9"}), "was written by noetl-feather/9"),
        (plain_arrow({"noetl.encoder": feather.ENCODER}), "is not a table"),
    ],
)
def test_what_is_not_a_table_of_ours_is_said_so(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "table.feather"
    path.write_bytes(data)
    for source in (data, path):
        with pytest.raises(ResultUnreadable, match=reason):
            open_stored(source, FEATHER_MEDIA_TYPE)


@pytest.mark.parametrize("data", [b"", b"[1]", b"{"])
def test_what_is_not_an_object_is_said_so(data: bytes) -> None:
    with pytest.raises(ResultUnreadable, match="is not a JSON object"):
        open_stored(data, JSON_MEDIA_TYPE)
