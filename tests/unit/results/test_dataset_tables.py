"""Datasets as tables of Arrow: one type for each column, wherever its values lie."""

from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
import pytest

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.kernel.errors import PayloadMissing
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.results.columns import is_json
from noetl.results.dataset import DatasetManifest, DatasetPart, frame_content
from noetl.results.dataset_file import dataset_file
from noetl.results.dataset_tables import DatasetTables, Wanted, table_of_rows
from noetl.results.feather import encode_table
from noetl.results.parted_rows import OPEN_PARTS_MAX, PartedRows
from noetl.results.store import ResultStore
from noetl.results.stored_table import StoredTable
from noetl.results.tabular import TablePath
from noetl.results.unified import unified
from noetl.templates.table_rows import TableRows
from tests.memory_results import memory_results

EXECUTION = ExecutionId("655648128737706002")
STEP = StepName("load")


def name_of(frame: int = 0, task: str | None = None) -> ResultName:
    return ResultName(
        tenant=DEFAULT_SCOPE.tenant_id,
        project=DEFAULT_SCOPE.organization_id,
        execution_id=EXECUTION,
        step=STEP,
        task=task,
        frame=frame,
    )


async def dataset(results: ResultStore, *frames: list[dict[str, Any]]) -> str:
    """The last frame stands in the manifest."""
    parts: list[DatasetPart] = []
    for index, rows in enumerate(frames):
        if index == len(frames) - 1:
            parts.append(DatasetPart(first=0, rows=len(rows), outcomes=rows))
        else:
            reference = await results.stage_rows(name_of(index), frame_content(rows))
            parts.append(DatasetPart(first=0, rows=len(rows), reference=reference))
    whole = DatasetName(
        tenant=DEFAULT_SCOPE.tenant_id,
        project=DEFAULT_SCOPE.organization_id,
        execution_id=EXECUTION,
        step=STEP,
    )
    manifest = DatasetManifest(loop={"count": 1}, parts=parts)
    return (await results.stage_dataset(whole, manifest)).uri


def ok(value: Any, index: int = 0) -> dict[str, Any]:
    return {"index": index, "status": "ok", "value": value}


async def test_objects_are_flattened_and_only_good_rows_are_there() -> None:
    results = memory_results()
    bad = {"index": 1, "status": "failed", "error": {"kind": "x"}}
    uri = await dataset(results, [ok({"a": 1}), bad], [ok({"a": 2.5, "b": "x"}, 2)])
    tables = DatasetTables(results.reads)

    table = await tables.table(uri)
    assert table.to_pylist() == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}]
    every = await tables.table(uri, Wanted(rows="all"))
    assert every.column("_status").to_pylist() == ["ok", "failed", "ok"]
    assert every.column("_error").to_pylist() == [None, '{"kind":"x"}', None]


async def test_values_of_many_kinds_are_json_or_their_columns() -> None:
    results = memory_results()
    uri = await dataset(results, [ok({"a": 1}), ok({"b": True})], [ok({"a": [1]})])
    tables = DatasetTables(results.reads)

    text = await tables.table(uri)
    assert text.to_pylist() == [
        {"value": '{"a":1}'},
        {"value": '{"b":true}'},
        {"value": '{"a":[1]}'},
    ]
    assert is_json(text.schema.field("value"))
    parsed = await tables.table(uri, Wanted(json="columns"))
    assert parsed.to_pylist() == [
        {"a": "1", "b": None},
        {"a": None, "b": True},
        {"a": "[1]", "b": None},
    ]


async def test_a_dataset_becomes_one_file_for_programs_that_want_one(tmp_path: Path) -> None:
    results = memory_results()
    uri = await dataset(results, [ok({"a": 1})], [ok({"a": None, "b": ["x"]})])
    path = await dataset_file(results.reads, uri, tmp_path / "one.feather")
    with StoredTable(path) as stored:
        assert stored.whole() == {"value": [{"a": 1, "b": None}, {"a": None, "b": ["x"]}]}


async def test_a_table_in_parts_is_the_list_of_its_rows(tmp_path: Path) -> None:
    results = memory_results()
    parts: list[DatasetPart] = []
    for index in range(3):
        rows = [{"id": index * 10 + each} for each in range(10)]
        if index == 1:
            parts.append(DatasetPart(first=0, rows=10, outcomes=rows))
            continue
        reference = await results.stage_rows(name_of(index, "parts"), {"rows": rows})
        parts.append(DatasetPart(first=0, rows=10, reference=reference))
    manifest = DatasetManifest(loop={}, parts=parts)
    whole = [{"id": each} for each in range(30)]
    reference = await results.stage_dataset(name_of(), manifest)

    content = await results.content(DEFAULT_SCOPE, reference.uri, reference)
    assert content == {"value": whole}
    table = await DatasetTables(results.reads).table(reference.uri)
    assert table.to_pylist() == whole
    path = await results.local_file(DEFAULT_SCOPE, reference, tmp_path)
    opened = StoredTable(path)
    source = PartedRows(parts, lambda _: opened)
    assert source.length == 30
    assert [source.row(index) for index in (0, 10, -1)] == [{"id": 0}, {"id": 10}, {"id": 9}]
    assert source.rows(8, 12) == [{"id": 8}, {"id": 9}, {"id": 10}, {"id": 11}]
    with pytest.raises(IndexError):
        source.row(30)

    await results.discard(DEFAULT_SCOPE, reference)
    with pytest.raises(PayloadMissing):
        await results.content(DEFAULT_SCOPE, reference.uri, reference)
    assert await results.objects.list_objects("") == []


async def test_a_scan_of_many_parts_holds_a_few_of_them(tmp_path: Path) -> None:
    results = memory_results()
    parts: list[DatasetPart] = []
    for index in range(3 * OPEN_PARTS_MAX):
        content = {"rows": [{"id": 2 * index}, {"id": 2 * index + 1}]}
        reference = await results.stage_rows(name_of(index, "parts"), content)
        parts.append(DatasetPart(first=2 * index, rows=2, reference=reference))
    held: WeakValueDictionary[str, StoredTable] = WeakValueDictionary()
    held_max = opened = 0

    def open_part(reference: ResultReference) -> StoredTable:
        nonlocal held_max, opened
        path = tmp_path / f"{opened}.feather"
        path.write_bytes(encode_table({"rows": [{"id": 0}, {"id": 1}]}, TablePath(("rows",))).data)
        table = held[reference.uri] = StoredTable(path)
        held_max, opened = max(held_max, len(held)), opened + 1
        return table

    rows = TableRows(PartedRows(parts, open_part))
    assert sum(1 for _ in rows) == len(rows) == 6 * OPEN_PARTS_MAX
    assert [rows[0], rows[1]] == [{"id": 0}, {"id": 1}]
    assert opened == len(parts) + 1, "a part that was let go is opened again, once"
    assert held_max <= OPEN_PARTS_MAX + 1  # the next one is opened before the oldest goes


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([pa.int64(), pa.null()], pa.int64()),
        ([pa.int64(), pa.float64()], pa.float64()),
        ([pa.null()], pa.string()),
        ([pa.large_string(), pa.string()], pa.string()),
        ([pa.list_(pa.int64()), pa.list_(pa.null())], pa.list_(pa.int64())),
        (
            [pa.struct({"a": pa.int64()}), pa.struct({"b": pa.bool_()})],
            pa.struct({"a": pa.int64(), "b": pa.bool_()}),
        ),
    ],
)
def test_one_type_holds_the_values_of_all(kinds: list[Any], expected: Any) -> None:
    assert unified([pa.field("x", kind) for kind in kinds]).type == expected


def test_where_there_is_no_such_type_it_is_json() -> None:
    assert is_json(unified([pa.field("x", pa.int64()), pa.field("x", pa.string())]))
    deep = [pa.struct({"a": pa.int64()}), pa.struct({"a": pa.string()})]
    assert is_json(unified([pa.field("x", kind) for kind in deep]))


def test_rows_at_hand_are_a_table_without_untyped_columns() -> None:
    assert table_of_rows([{"a": None}, {"a": None, "b": 1}]).to_pylist() == [
        {"a": None, "b": None},
        {"a": None, "b": 1},
    ]
    assert table_of_rows([1, 2]).to_pylist() == [{"value": 1}, {"value": 2}]
    assert table_of_rows([]).schema.names == ["value"]
