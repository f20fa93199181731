"""Large results: fetched when a template or a tool has to see them."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.payload import PayloadReference
from noetl.kernel import canonical_json
from noetl.pipeline.contents import Contents
from noetl.pipeline.payloads import as_reference
from noetl.templates.layered import PipelineResult
from noetl.templates.places import Iteration
from noetl.templates.recorded import content_of, inline_result, referred_result
from noetl.templates.reference import Reference
from tests.unit.pipeline.rows import SCOPE, FunctionTool, House, job, results

ROWS = [{"id": number, "text": "x" * 100} for number in range(2_000)]


async def stored(house: House, value: Any, media_type: str = "application/json") -> Result:
    content = content_of(value)
    put = await house.payloads.put(SCOPE, canonical_json.encode(content), media_type)
    reference = ResultReference(
        type="object_store",
        uri=put.uri,
        sha256=put.sha256,
        media_type=media_type,
        byte_length=put.byte_length,
    )
    return referred_result(content, reference)


def fetches(house: House) -> list[str]:
    """The digests that are fetched from now on."""
    seen: list[str] = []
    get = house.payloads.get

    def counted(reference: PayloadReference) -> Any:
        seen.append(reference.sha256)
        return get(reference)

    house.payloads.get = counted  # type: ignore[method-assign]
    return seen


async def test_a_template_that_looks_past_the_block_gets_the_payload() -> None:
    house = House()
    given = results(fetch=await stored(house, {"rows": ROWS}), small=inline_result(5))
    text = "- step: s\n  tool: {kind: noop, result: '{{ fetch.rows[1999].id + small }}'}"

    ended = await house.run(job(text, results=given))

    assert ended.value == 2_004


async def test_what_the_block_knows_costs_no_fetch() -> None:
    house = House()
    given = results(fetch=await stored(house, {"rows": ROWS}))
    seen = fetches(house)
    text = "- step: s\n  tool: {kind: noop, result: '{{ fetch.rows | length }}'}"

    ended = await house.run(job(text, results=given))

    assert (ended.value, seen) == (2_000, [])


async def test_tools_get_the_value_itself() -> None:
    tool = FunctionTool(lambda call: [len(call.input["rows"]), len(call.parameters["json"]["all"])])
    house = House(http=tool)
    given = results(fetch=await stored(house, {"rows": ROWS}))
    text = """
        - step: s
          tool: {kind: http, url: u, input: {rows: "{{ fetch.rows }}"},
                 json: {all: "{{ fetch.rows }}", one: ["{{ fetch }}"]}}
        """

    await house.run(job(text, results=given))

    (call,) = tool.calls
    assert call.input["rows"] == ROWS
    assert call.parameters["json"] == {"all": ROWS, "one": [{"rows": ROWS}]}


async def test_a_task_of_a_large_pipeline_is_opened_by_its_name() -> None:
    house = House()
    whole = PipelineResult({"a": {"rows": ROWS}, "b": {"n": 1}})
    given = results(pipe=await stored(house, whole))
    text = "- step: s\n  tool: {kind: noop, result: ['{{ pipe.a.rows[1999].id }}', '{{ pipe.n }}']}"

    ended = await house.run(job(text, results=given))

    assert ended.value == [1_999, 1]


async def test_rows_that_share_their_facts_share_the_fetch() -> None:
    house = House()
    given = results(fetch=await stored(house, {"rows": ROWS}))
    seen = fetches(house)
    text = "- step: s\n  tool: {kind: noop, result: '{{ fetch.rows[1999].id }}'}"
    work = job(text, results=given)

    for _ in range(3):
        await house.run(work)
    await house.run(job(text, results=given))

    assert len(seen) == 1


async def test_an_item_by_reference_is_opened_when_it_is_needed() -> None:
    tool = FunctionTool(lambda call: call.input)
    house = House(python=tool)
    result = await stored(house, ROWS)
    assert result.reference is not None
    item = Reference(result.reference.uri, path=("value", 7))
    row = Iteration(iterator="item", item=item, index=0)
    text = "- step: s\n  tool: {kind: python, code: x, input: {id: '{{ item.id }}'}}"

    await house.run(job(text, iteration=row))

    assert tool.calls[0].input == {"item": ROWS[7], "id": 7}


async def test_a_rule_and_a_set_may_need_one_too() -> None:
    house = House()
    given = results(fetch=await stored(house, {"rows": ROWS}))
    text = """
        - step: s
          tool:
            kind: noop
            set: {ctx.last: "{{ fetch.rows[1999].id }}", ctx.first: "{{ fetch.rows[0] }}"}
            spec: {policy: {rules: [{when: "{{ fetch.rows[1998].id == 1998 }}",
                                     then: {do: break}}]}}
        """

    ended = await house.run(job(text, results=given))

    assert (ended.status, ended.writes) == ("break", {"last": 1_999, "first": ROWS[0]})


class TestFailures:
    TEXT = "- step: s\n  tool: {kind: noop, result: '{{ fetch.rows[1999].id }}'}"

    async def test_a_payload_that_is_gone(self) -> None:
        house = House()
        result = await stored(house, {"rows": ROWS})
        for each in await house.payloads.objects.list_objects(""):
            await house.payloads.objects.delete(each.key)

        ended = await house.run(job(self.TEXT, results=results(fetch=result)))

        assert ended.error is not None
        assert (ended.error.kind, ended.error.retryable) == ("missing_reference", True)

    async def test_a_payload_of_another_tenant(self) -> None:
        house = House()
        result = await stored(house, {"rows": ROWS})
        assert result.reference is not None
        uri = result.reference.uri.replace("acme", "other")
        moved = msgspec.structs.replace(result.reference, uri=uri)
        other = msgspec.structs.replace(result, reference=moved)

        ended = await house.run(job(self.TEXT, results=results(fetch=other)))

        assert ended.error is not None
        assert ended.error.kind == "missing_reference"

    async def test_an_item_that_is_no_json(self) -> None:
        house = House()
        put = await house.payloads.put(SCOPE, b"ARROW1", "application/json")
        row = Iteration(iterator="fetch", item=Reference(put.uri), index=0)

        ended = await house.run(job(self.TEXT, iteration=row))

        assert ended.error is not None
        assert "is not JSON" in ended.error.message


async def test_a_template_looks_into_a_stored_table() -> None:
    house = House()
    result = await house.results.record(job("- step: s").result_name(), {"rows": ROWS})
    assert result.reference is not None
    assert result.reference.row_count == len(ROWS)
    text = "- step: s\n  tool: {kind: noop, result: '{{ fetch.rows[1999].id }}'}"

    ended = await house.run(job(text, results=results(fetch=result)))

    assert ended.value == 1_999


async def test_contents_are_kept_while_there_is_room() -> None:
    house = House()
    puts = [await house.payloads.put(SCOPE, b"[%d]" % n, "application/json") for n in range(3)]
    seen = fetches(house)
    contents = Contents(house.results, kept_bytes_max=6)

    for at in (0, 1, 0, 2, 0, 1):
        assert await contents.get(SCOPE, puts[at].uri, as_reference(puts[at])) == [at]

    assert [puts[at].sha256 for at in (0, 1, 2, 1)] == seen


@pytest.mark.parametrize("count", [1, 50])
async def test_a_program_sees_large_results_by_their_name(count: int) -> None:
    tool = FunctionTool(lambda call: call.context["steps"]["fetch"])
    house = House(python=tool)
    result = await stored(house, {"rows": ROWS, "count": count})
    text = "- step: s\n  tool: {kind: python, code: 'result = context'}"

    ended = await house.run(job(text, results=results(fetch=result)))

    assert result.reference is not None
    assert (ended.value["_ref"], ended.value["count"]) == (result.reference.uri, count)
