"""Tables that tools hand over: stored once, looked into by rules and tasks, never encoded again."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noetl.kernel.ids import StepName
from noetl.pipeline.keeping import keeping_of_step
from noetl.ports.tool import ToolCall, ToolResult, ToolTable
from noetl.results import lazily
from noetl.results.table_writer import TableWriter
from noetl.results.tabular import TablePath
from noetl.templates.layered import PipelineResult, StoredResult
from noetl.templates.places import Iteration
from noetl.templates.table_rows import TableRows
from tests.unit.pipeline.rows import SCOPE, FunctionTool, House, job

ROWS = [{"id": number, "name": f"n{number}"} for number in range(3_000)]
SHELL = {"value": {"status": "ok", "rows": None, "row_count": None}}
PLACE = TablePath(("value", "rows"), counts=(("value", "row_count"),))
WHOLE = {"status": "ok", "rows": ROWS, "row_count": 3_000}

LONE = "- step: s\n  tool: {kind: postgres, query: q}"
TWO = """
- step: s
  tool:
    - {name: read, kind: postgres, query: q}
    - {name: use, kind: http, url: u, json: "{{ read.rows }}", data: "{{ read.rows[2000].name }}"}
"""


@pytest.fixture(autouse=True)
def _small_tables_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazily, "LAZY_BYTES_MIN", 1_000)


def table(folder: Path, rows: list[dict[str, Any]] = ROWS) -> ToolResult:
    batch = pa.RecordBatch.from_pylist(rows)
    with TableWriter(folder / "t.feather", batch.schema, SHELL, PLACE) as writer:
        writer.write(batch)
        file = writer.close()
    path, row_count, byte_length, digest, _ = file
    written = ToolTable(
        path=path, row_count=row_count, byte_length=byte_length, schema_digest=digest
    )
    return ToolResult(table=written)


def house_of(folder: Path, **tools: FunctionTool) -> House:
    return House(postgres=FunctionTool(lambda _: table(folder)), **tools)


async def test_a_table_is_stored_under_the_steps_name_and_its_file_is_gone(tmp_path: Path) -> None:
    house = house_of(tmp_path)
    given = job(LONE)

    ended = await house.run(given)

    assert os.listdir(tmp_path) == []
    assert isinstance(ended.value, StoredResult)
    record = keeping_of_step(given.step, None).record
    recorded = await record(house.results, given.result_name(), ended.value)
    assert recorded.reference is not None
    assert recorded.reference.uri == given.result_name().uri
    assert recorded.reference.row_count == 3_000
    content = await house.results.content(SCOPE, recorded.reference.uri, recorded.reference)
    assert content == {"value": WHOLE}
    block = recorded.context["extracted"]["value"]
    assert (block["row_count"], block["rows"][0]) == (3_000, ROWS[0])


async def test_rules_and_set_look_into_the_table_without_decoding_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
- step: s
  tool:
    kind: postgres
    query: q
    spec:
      policy:
        rules:
          - when: "{{ output.data.rows[2500].id == 2500 and output.data.rows | length == 3000 }}"
            then: {do: continue, set: {ctx.last: "{{ output.data.rows[-1].name }}"}}
          - else: {then: {do: fail}}
"""

    def refuse(_rows: TableRows) -> None:
        raise AssertionError("all of it was decoded")

    monkeypatch.setattr(TableRows, "listed", refuse)

    ended = await house_of(tmp_path).run(job(text))

    assert (ended.status, ended.writes) == ("ok", {"last": "n2999"})


async def test_a_tool_that_takes_tables_gets_the_reference_and_others_get_rows(
    tmp_path: Path,
) -> None:
    taking = FunctionTool(lambda call: {"got": type(call.parameters["json"]).__name__})
    taking.takes_tables = True  # type: ignore[attr-defined]
    plain = FunctionTool(lambda call: {"same": call.parameters["json"] == ROWS})

    for tool, expected in ((taking, {"got": "TableRows"}), (plain, {"same": True})):
        house = house_of(tmp_path, http=tool)
        given = job(TWO)
        ended = await house.run(given)
        assert isinstance(ended.value, PipelineResult)
        assert ended.value.tasks["use"] == expected
        assert tool.calls[0].parameters["data"] == "n2000"
    rows = taking.calls[0].parameters["json"]
    assert rows.reference.uri == given.result_name("read").uri


async def test_the_result_of_a_pipeline_names_the_table_and_reads_back_whole(
    tmp_path: Path,
) -> None:
    house = house_of(tmp_path, http=FunctionTool(lambda _: {"done": True}))
    given = job(TWO)
    ended = await house.run(given)

    recorded = await house.results.record(given.result_name(), ended.value)

    assert recorded.reference is not None
    assert (recorded.reference.byte_length or 0) < 2_000
    uri = recorded.reference.uri
    content = await house.results.content(SCOPE, uri, recorded.reference)
    assert content == {"tasks": {"read": WHOLE, "use": {"done": True}}, "order": ["read", "use"]}

    later = (
        "- step: t\n  tool: {kind: noop, result: '{{ s.read.rows[5].name ~ s.read.row_count }}'}"
    )
    ended = await house.run(job(later, results={StepName("s"): recorded}))
    assert ended.value == "n53000"


async def test_a_later_step_passes_the_table_on_as_rows_or_as_a_table(tmp_path: Path) -> None:
    taking = FunctionTool(lambda call: {"rows": len(call.input["rows"])})
    taking.takes_tables = True  # type: ignore[attr-defined]
    house = house_of(tmp_path, http=taking)
    first = job(LONE)
    recorded = await house.results.record(first.result_name(), (await house.run(first)).value)
    given = {StepName("s"): recorded}

    taken = "- step: t\n  input: {rows: '{{ s.rows }}'}\n  tool: {kind: http, url: u}"
    assert (await house.run(job(taken, results=given))).value == {"rows": 3_000}
    rows = taking.calls[0].input["rows"]
    assert isinstance(rows, TableRows)
    assert rows.reference == recorded.reference

    echoed = "- step: t\n  tool: {kind: noop, result: '{{ s.rows }}'}"
    assert (await house.run(job(echoed, results=given))).value == ROWS


async def test_rows_of_a_loop_hold_the_table_as_rows(tmp_path: Path) -> None:
    row = Iteration(iterator="item", item=1, index=0)
    ended = await house_of(tmp_path).run(job(LONE, iteration=row))
    assert ended.value == WHOLE


async def test_an_earlier_holders_table_is_adopted_as_it_lies(tmp_path: Path) -> None:
    effect = FunctionTool(lambda _: table(tmp_path), effect=True)
    house = House(postgres=effect, http=FunctionTool(lambda call: call.parameters["data"]))
    ended = await house.run(job(TWO))
    journal = {(call.task, call.run): call for call in ended.calls}
    assert journal

    again = await house.run(job(TWO, journal=journal, attempt=2))

    assert len(effect.calls) == 1
    assert isinstance(again.value, PipelineResult)
    assert again.value.tasks["use"] == "n2000"
    read = again.value.tasks["read"]
    assert isinstance(read, StoredResult)
    assert read.recorded == journal["read", 1].result


async def test_secrets_are_not_in_the_stored_table(tmp_path: Path) -> None:
    def leaky(call: ToolCall) -> ToolResult:
        assert call.credential is not None
        secret = call.credential.data["password"]
        return table(tmp_path, [{"id": 1, "name": "x"}, {"id": 2, "name": f"it is {secret}!"}])

    house = House(postgres=FunctionTool(leaky))
    await house.keep("pg", {"password": "hunter22.+"}, type="postgres")
    given = job("- step: s\n  tool: {kind: postgres, query: q, auth: pg}")

    ended = await house.run(given)

    recorded = await house.results.record(given.result_name(), ended.value)
    assert recorded.reference is not None
    content = await house.results.content(SCOPE, recorded.reference.uri, recorded.reference)
    assert [row["name"] for row in content["value"]["rows"]] == ["x", "it is ***!"]
    assert "hunter22" not in str(recorded.context)
    assert os.listdir(tmp_path) == []
