"""Tables into code and out of it: as files for Arrow, as rows where they are small."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.tool import ToolFailed, ToolResult
from noetl.results import lazily
from noetl.results.feather import ENCODER
from noetl.results.stored_table import StoredTable
from noetl.results.table_writer import TableWriter
from noetl.tools.python import PythonTool
from tests.tools.calls import call, services
from tests.tools.stored_tables import stored_rows

MAKE = """
import pyarrow as pa
def batch(start, count=20_000):
    ids = list(range(start, start + count))
    return pa.record_batch({"id": ids, "text": ["x" * 40 + str(i) for i in ids]})
"""
LARGE = 200_000  # rows of the text above


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[PythonTool]:
    tool = PythonTool(services(tmp_path, environment={"PATH": "/usr/bin:/bin"}))
    yield tool
    await tool.close()


async def run(tool: PythonTool, code: str, given: Any = None, **parameters: Any) -> ToolResult:
    return await tool.run(call("python", {"code": MAKE + code, **parameters}, input=given or {}))


def opened(result: ToolResult) -> StoredTable:
    assert result.table is not None
    assert result.value is None
    return StoredTable(result.table.path)


@pytest.mark.parametrize(
    "large",
    [
        "pa.Table.from_batches([batch(i * 20_000) for i in range(10)])",
        "batch(0, 200_000)",
        "pa.RecordBatchReader.from_batches(batch(0).schema,"
        " (batch(i * 20_000) for i in range(10)))",
        "(batch(i * 20_000) for i in range(10))",
        "batch(0, 200_000).to_pandas()",
    ],
    ids=["table", "batch", "reader", "generator", "pandas"],
)
async def test_a_large_table_is_handed_over_as_a_file(tool: PythonTool, large: str) -> None:
    result = await run(tool, f"result = {large}")
    with opened(result) as table:
        assert (table.length, table.table.keys) == (LARGE, ("value",))
        assert table.row(123_456) == {"id": 123_456, "text": "x" * 40 + "123456"}
        assert result.table is not None
        assert result.table.row_count == LARGE
        assert result.table.schema_digest == table.schema_digest


async def test_a_table_inside_a_result_keeps_what_stands_around_it(tool: PythonTool) -> None:
    result = await run(
        tool, "result = {'status': 'ok', 'rows': batch(0, 200_000), 'few': batch(0, 2)}"
    )
    with opened(result) as table:
        assert table.look_into(["value", "status"]) == "ok"
        assert len(table.look_into(["value", "few"])) == 2
        assert table.look_into(["value", "rows", 7, "id"]) == 7


async def test_small_tables_are_rows(tool: PythonTool) -> None:
    rows = [{"id": 5, "text": "x" * 40 + "5"}]
    for small in ("batch(5, 1)", "pa.table(batch(5, 1))", "iter([batch(5, 1)])"):
        assert (await run(tool, f"result = {small}")).value == rows
    nested = await run(tool, "result = {'rows': batch(5, 1).to_pandas(), 'n': 1}")
    assert nested.value == {"rows": rows, "n": 1}
    assert (await run(tool, "result = batch(0, 0)")).value == []


async def test_large_tables_have_the_values_that_small_ones_have(tool: PythonTool) -> None:
    code = """
import datetime as dt, decimal
days = [dt.datetime(2024, 1, 2, 3, 4, 5), dt.datetime(2024, 1, 2, 3, 4, 5, 678000), None]
def table(copies):
    base = pa.table({
        "naive": pa.array(days, pa.timestamp("us")),
        "whole": pa.array([days[0], days[0], None], pa.timestamp("us")),
        "aware": pa.array([days[0], days[0], None], pa.timestamp("us", "UTC")),
        "day": pa.array([day and day.date() for day in days]),
        "money": pa.array([decimal.Decimal("1.10"), decimal.Decimal("2"), None],
                          pa.decimal128(9, 2)),
        "whole_money": pa.array([decimal.Decimal("7"), None, None], pa.decimal128(9, 0)),
        "kind": pa.array(["a", "b", None]).dictionary_encode(),
        "span": pa.array([dt.timedelta(seconds=1.5), None, None]),
        "nested": pa.array([{"at": days[0]}, None, None]),
        "list": pa.array([[1, 2], [], None]),
        "bulk": pa.array(["y" * 50_000] * 3),
    })
    return pa.concat_tables([base] * copies)
"""
    small = (await run(tool, code + "result = table(1)")).value
    result = await run(tool, code + "result = table(40)")
    with opened(result) as table:
        assert table.rows(0, 3) == small
    assert small[0]["whole"] == "2024-01-02T03:04:05"
    assert small[0]["aware"] == "2024-01-02T03:04:05+00:00"


async def test_what_cannot_be_recorded_is_said_and_leaves_no_file(
    tool: PythonTool, tmp_path: Path
) -> None:
    for made, words in (
        ("pa.table({'x': [float('nan')] * 1_000_000})", "not finite"),
        ("pa.table({'x': [b'abcdefgh'] * 1_000_000})", "is bytes"),
        ("pa.table({'x': [1.0] * 1_000_000}).to_pandas() * float('nan')", "has NaN"),
        ("(row for row in [1, 2])", "which JSON cannot carry"),
    ):
        with pytest.raises(ToolFailed, match=words) as raised:
            await run(tool, f"result = {made}")
        assert raised.value.failure.kind == "schema"
    code = "def give():\n    yield batch(0, 200_000)\n    raise OSError('gone')\nresult = give()"
    with pytest.raises(ToolFailed):
        await run(tool, code)
    assert os.listdir(tmp_path) == []


ROWS = [{"id": number, "mixed": number if number % 2 else "even"} for number in range(1_000)]


async def test_code_gets_stored_tables_as_arrow_or_as_rows(
    tool: PythonTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazily, "LAZY_BYTES_MIN", 0)
    rows = await stored_rows(tool._services, DEFAULT_SCOPE, ROWS)
    given = {"rows": rows, "inner": {"again": rows}, "n": 3}

    plain = await run(tool, "result = [rows[1], inner['again'] == rows, len(rows)]", given)
    assert plain.value == [ROWS[1], True, 1_000]

    code = "result = [type(rows).__name__, rows.num_rows, rows['mixed'][1].as_py(), n]"
    code += "; assert inner['again'].equals(rows)"
    arrow = await run(tool, code, given, tables="arrow")
    assert arrow.value == ["Table", 1_000, "1", 3]
    inline = await run(tool, code, {"rows": ROWS, "inner": {"again": ROWS}, "n": 3}, tables="arrow")
    assert inline.value == arrow.value
    empty = await run(tool, "result = rows.num_rows", {"rows": []}, tables="arrow")
    assert empty.value == 0
    assert [name for name in os.listdir(tmp_path) if name.startswith("tables-")] == []


async def test_an_unknown_form_of_tables_is_refused(tool: PythonTool) -> None:
    with pytest.raises(ToolFailed, match="write `arrow`"):
        await run(tool, "result = 1", tables="polars")


def test_the_file_of_the_child_is_that_of_the_writer(tmp_path: Path) -> None:
    """Both use one module; this is the form that they write with it."""
    with TableWriter(tmp_path / "t", pa.schema({"a": pa.int64()}), {"value": None}) as writer:
        writer.close()
    with StoredTable(tmp_path / "t") as table:
        assert table.schema.metadata[b"noetl.encoder"] == ENCODER.encode()
