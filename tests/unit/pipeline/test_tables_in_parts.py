"""Tables that a tool has stored itself, in parts: named, looked into, plain where they must be."""

from typing import Any

import msgspec

from noetl.domain.naming.result_name import parse_result_name
from noetl.pipeline.keeping import keeping_of_step
from noetl.ports.tool import ToolCall, ToolResult
from noetl.results.dataset import DatasetManifest, DatasetPart
from noetl.templates.layered import PipelineResult, StoredResult
from noetl.templates.places import Iteration
from tests.unit.pipeline.rows import SCOPE, FunctionTool, House, job

ROWS = [{"id": number, "name": f"n{number}"} for number in range(100)]
LONE = "- step: s\n  tool: {kind: spark, sql: SELECT 1}"
TWO = """
- step: s
  tool:
    - {name: read, kind: spark, sql: SELECT 1}
    - {name: use, kind: http, url: u, json: "{{ read }}", data: "{{ read[70].name }}"}
"""


def house_of(rows: list[dict[str, Any]] = ROWS, **tools: FunctionTool) -> House:
    """Its spark tool stores the rows under the name that it is told."""

    async def stored(call: ToolCall) -> ToolResult:
        name = parse_result_name(call.result)
        half = len(rows) // 2
        part = msgspec.structs.replace(name, task="0.parts")
        reference = await house.results.stage_rows(part, {"rows": rows[:half]})
        parts = [
            DatasetPart(first=0, rows=half, reference=reference),
            DatasetPart(first=half, rows=len(rows) - half, outcomes=rows[half:]),
        ]
        manifest = DatasetManifest(loop={}, parts=parts)
        return ToolResult(stored=await house.results.stage_dataset(name, manifest))

    house = House(spark=FunctionTool(stored), **tools)
    return house


async def test_the_result_of_the_step_is_what_the_tool_has_stored() -> None:
    house, given = house_of(), job(LONE)
    ended = await house.run(given)

    assert isinstance(ended.value, StoredResult)
    keeping = keeping_of_step(given.step, None)
    recorded = await keeping.record(house.results, given.result_name(), ended.value)
    reference = recorded.reference
    assert reference is not None
    assert (reference.uri, reference.row_count) == (given.result_name().uri, 100)
    assert recorded.context["extracted"]["value"][0] == ROWS[0]
    content = await house.results.content(SCOPE, reference.uri, reference)
    assert content == {"value": ROWS}


async def test_later_tasks_see_its_rows() -> None:
    use = FunctionTool(lambda call: {"same": call.parameters["json"] == ROWS})
    ended = await house_of(http=use).run(job(TWO))
    assert isinstance(ended.value, PipelineResult)
    assert ended.value.tasks["use"] == {"same": True}
    assert use.calls[0].parameters["data"] == "n70"


async def test_in_a_loop_it_is_plain() -> None:
    row = Iteration(iterator="x", item=1, index=0)
    ended = await house_of().run(job(LONE, iteration=row))
    assert ended.value == ROWS


async def test_what_shows_a_secret_does_not_stay() -> None:
    house = house_of([{"text": "x"}, {"text": "it is hunter22.+!"}])
    await house.keep("pg", {"password": "hunter22.+"}, type="postgres")
    ended = await house.run(job("- step: s\n  tool: {kind: spark, sql: q, auth: pg}"))

    assert ended.value == [{"text": "x"}, {"text": "it is ***!"}]
    assert await house.results.objects.list_objects("") == []
