"""What tools get wrong stays at the boundary; what rows give is plain data; objects are told."""

import datetime
from typing import Any

import pytest

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.kernel.errors import ClaimLost, InvariantBroken
from noetl.pipeline.timing import TaskTime
from noetl.ports.tool import Tool
from tests.unit.pipeline.rows import FunctionTool, House, in_turn, job


async def test_an_error_that_no_tool_should_raise_is_unknown() -> None:
    rule = "{when: \"{{ output.py.exception == 'KeyError' }}\", then: {do: break}}"
    text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"

    ended = await House(http=FunctionTool(in_turn(KeyError("x")))).run(job(text))
    bare = await House(http=FunctionTool(in_turn(ValueError()))).run(
        job("- step: s\n  tool: {kind: http, url: u}")
    )

    assert ended.status == "break"
    assert bare.error is not None
    assert (bare.error.kind, bare.error.message) == ("unknown", "ValueError")


@pytest.mark.parametrize("error", [ClaimLost("row", "is gone"), InvariantBroken("ours")])
async def test_what_is_not_the_tools_gets_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        await House(http=FunctionTool(in_turn(error))).run(
            job("- step: s\n  tool: {kind: http, url: u}")
        )


async def test_an_unknown_kind_is_a_failure() -> None:
    ended = await House().run(job("- step: s\n  tool: {kind: http, url: u}"))

    assert ended.error is not None
    assert ended.error.kind == "client_error"


async def test_a_tool_that_cannot_say_whether_it_has_an_effect() -> None:
    class Strange(FunctionTool):
        def has_effect(self, parameters: Any) -> bool:
            raise AttributeError("upper")

    tool: Tool = Strange(lambda _: 1)
    ended = await House(http=tool).run(job("- step: s\n  tool: {kind: http, url: u}"))

    assert ended.error is not None
    assert ended.error.message == "AttributeError: upper"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"rows": [{"at": datetime.date(2026, 1, 1)}]}, "s.rows[0].at is a date"),
        ({"n": float("nan")}, "s.n"),
        ({1: "a"}, "keys must be text"),
        ((1, 2), "is a tuple"),
    ],
)
async def test_a_value_that_is_not_plain_fails_and_is_named(value: Any, said: str) -> None:
    ended = await House(http=FunctionTool(lambda _: value, effect=True)).run(
        job("- step: s\n  tool: {kind: http, url: u}")
    )

    assert ended.error is not None
    assert ended.error.kind == "schema"
    assert said in ended.error.message
    assert [call.effect for call in ended.calls] == ["fired"]


class TestEmit:
    async def test_a_task_and_a_step_tell_of_objects(self) -> None:
        ended = await House().run(
            job(
                """
                - step: s
                  emit: {object: batch, id: "{{ output.b.n }}", status: done}
                  tool:
                    - name: a
                      kind: noop
                      result: {n: 7}
                      emit:
                        - {object: order, id: "{{ output.n }}", status: "{{ output.status }}",
                           attributes: {total: "{{ output.n * 2 }}"}}
                        - {object: "{{ kind }}", id: x}
                    - {name: b, kind: noop, result: {n: 8}}
                """,
                workload={"kind": "file"},
            )
        )

        assert ended.emitted == (
            BusinessObjectChanged(object="order", id="7", status="ok", attributes={"total": 14}),
            BusinessObjectChanged(object="file", id="x"),
            BusinessObjectChanged(object="batch", id="8", status="done"),
        )

    async def test_a_failed_row_tells_only_what_happened_before(self) -> None:
        ended = await House(http=FunctionTool(in_turn(ValueError()))).run(
            job(
                """
                - step: s
                  emit: {object: batch, id: 1}
                  tool:
                    - {name: a, kind: noop, emit: {object: order, id: 1}}
                    - {name: b, kind: http, url: u, emit: {object: order, id: 2}}
                """
            )
        )

        assert [(each.object, each.id) for each in ended.emitted] == [("order", "1")]

    @pytest.mark.parametrize(
        ("emit", "said"),
        [
            ("{object: order, id: '{{ nothing }}'}", "gave no id"),
            ("{object: order, id: 1, attributes: '{{ 5 }}'}", "not a map"),
            ("{object: order, id: '{{ 1 / 0 }}'}", "id"),
        ],
    )
    async def test_a_change_of_nothing_fails(self, emit: str, said: str) -> None:
        task = await House().run(job(f"- step: s\n  tool: {{kind: noop, emit: {emit}}}"))
        step = await House().run(job(f"- step: s\n  emit: {emit}\n  tool: {{kind: noop}}"))

        for ended in (task, step):
            assert ended.error is not None
            assert ended.status == "failed"
            assert said in ended.error.message


async def test_a_row_counts_the_time_of_its_tasks() -> None:
    house = House()

    async def slow(_call: Any) -> None:
        await house.clock.sleep(0.25)

    house.tools.by_kind["http"] = FunctionTool(slow)
    ended = await house.run(
        job("- step: s\n  tool: [{name: a, kind: http, url: u}, {name: b, kind: noop}]")
    )

    assert ended.times == {
        "a": TaskTime("http", tries=1, seconds=0.25, tool_seconds=0.25),
        "b": TaskTime("noop", tries=1),
    }
