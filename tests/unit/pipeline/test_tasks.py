"""Tasks run in order, each rendered when its turn comes."""

from typing import Any

import pytest

from noetl.kernel.ids import CommandId
from noetl.ports.tool import ToolCall
from noetl.templates.layered import PipelineResult
from noetl.templates.places import Frame, Iteration
from tests.unit.pipeline.rows import SCOPE, FunctionTool, House, job


async def test_a_single_tools_value_is_the_rows_value() -> None:
    ended = await House().run(job("- step: s\n  tool: {kind: noop, result: {n: 1}}"))

    assert (ended.status, ended.value, ended.error) == ("ok", {"n": 1}, None)
    assert (ended.calls, ended.writes, ended.emitted) == ((), {}, ())


async def test_a_step_without_tasks_ends_at_once() -> None:
    ended = await House().run(job("- step: s"))

    assert (ended.status, ended.value) == ("ok", None)


async def test_later_tasks_see_earlier_ones_by_every_name() -> None:
    ended = await House().run(
        job(
            """
            - step: s
              tool:
                - {name: a, kind: noop, result: {n: 1}}
                - name: b
                  kind: noop
                  result:
                    by_name: "{{ a.n }}"
                    data: "{{ a.data.n }}"
                    output: "{{ output.n }}"
                    status: "{{ output.status }}"
                    previous: "{{ _prev.n }}"
                    results: "{{ results.a.n }}"
                    place: "{{ _task }}/{{ _attempt }}"
                    later: "{{ c.n | default('nothing yet') }}"
                - {name: c, kind: noop, result: "{{ b.by_name + 1 }}"}
            """
        )
    )

    assert isinstance(ended.value, PipelineResult)
    assert list(ended.value.tasks) == ["a", "b", "c"]
    assert ended.value.tasks["b"] == {
        "by_name": 1,
        "data": 1,
        "output": 1,
        "status": "ok",
        "previous": 1,
        "results": 1,
        "place": "b/1",
        "later": "nothing yet",
    }
    assert ended.value.tasks["c"] == 2


async def test_the_steps_input_lies_under_the_tasks_own_and_names_its_parameters() -> None:
    shown = FunctionTool(lambda call: {"input": call.input, "url": call.parameters["url"]})

    ended = await House(http=shown).run(
        job(
            """
            - step: s
              input: {limit: "{{ page_size }}", page: 1}
              tool: {kind: http, url: "/{{ page }}?n={{ limit }}&i={{ input.limit }}",
                     input: {page: "{{ ctx.page }}"}}
            """,
            workload={"page_size": 10},
            ctx={"page": 3},
        )
    )

    assert ended.value == {"input": {"page": 3, "limit": 10}, "url": "/3?n=10&i=10"}


async def test_a_call_says_for_whom_it_is() -> None:
    tool = FunctionTool(lambda call: None)

    await House(http=tool).run(
        job(
            "- step: s\n  tool: {kind: http, url: u, timeout: 5}",
            visit=2,
            command_id=CommandId("77/s/2/0/1"),
            iteration=Iteration(iterator="item", item=1, index=4, total=9),
        )
    )

    (call,) = tool.calls
    assert (call.kind, call.task, call.step, call.execution_id) == ("http", "s", "s", "77")
    assert (call.scope, call.command_id, call.timeout_seconds) == (SCOPE, "77/s/2/0/1", 5.0)
    assert call.idempotency_key == "77/s/2/4/s/1"


def test_a_whole_frame_has_cycles_of_its_own() -> None:
    frames = [job("- step: s", frame=Frame(index=index, base_index=0)) for index in (0, 1)]

    assert [each.coordinates for each in frames] == ["77/s/1/0", "77/s/1/1"]


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        ({"iteration": Iteration(iterator="item", item={"id": 5}, index=2, total=3)}, [5, 2, None]),
        (
            {
                "iteration": Iteration(iterator="item", item={"id": 5}, index=12),
                "frame": Frame(index=1, base_index=10),
            },
            [5, 12, 2],
        ),
    ],
)
async def test_a_row_sees_its_item(place: dict[str, Any], seen: list[Any]) -> None:
    ended = await House().run(
        job(
            """
            - step: s
              loop: {in: [1], iterator: item}
              tool: {kind: noop, result: ["{{ item.id }}", "{{ iter._index }}",
                                          "{{ _frame_row_index }}"]}
            """,
            **place,
        )
    )

    assert ended.value == seen


async def test_a_frame_sees_all_its_rows() -> None:
    ended = await House().run(
        job(
            """
            - step: s
              loop: {in: [1], iterator: row}
              tool: {kind: noop, result: "{{ row | length + iter.row_rows[0] + frame.index }}"}
            """,
            frame=Frame(index=3, rows=[7, 8], row_count=2),
        )
    )

    assert ended.value == 12


async def test_a_lone_program_in_a_loop_gets_its_item_as_an_argument() -> None:
    tool = FunctionTool(lambda call: call.input)
    row = Iteration(iterator="item", item={"id": 5}, index=0)
    lone = "- step: s\n  tool: {kind: python, code: 'result = 1', input: {a: 1}}"
    listed = "- step: s\n  tool: [{name: t, kind: python, code: 'result = 1', input: {a: 1}}]"

    await House(python=tool).run(job(lone, iteration=row))
    await House(python=tool).run(job(listed, iteration=row))

    assert [call.input for call in tool.calls] == [{"item": {"id": 5}, "a": 1}, {"a": 1}]


async def test_braces_of_a_program_are_its_own_unless_they_name_something() -> None:
    tool = FunctionTool(lambda call: call.parameters)
    code = "x = f'{{x}}'; n = {{ page_size }}"

    ended = await House(python=tool).run(
        job(
            f"""
            - step: s
              tool:
                - {{name: a, kind: python, code: "{code}"}}
                - name: b
                  kind: python
                  script: {{uri: "u/{{{{ page_size }}}}", source: {{type: inline, code: "{code}"}}}}
            """,
            workload={"page_size": 10},
        )
    )

    done = "x = f'{{x}}'; n = 10"
    assert ended.value.tasks["a"] == {"code": done}
    assert ended.value.tasks["b"] == {
        "script": {"uri": "u/10", "source": {"type": "inline", "code": done}}
    }


async def test_a_program_can_look_around_but_not_into_the_keychain() -> None:
    seen: list[dict[str, Any]] = []

    def look(call: ToolCall) -> None:
        seen.append(dict(call.context))

    await House(python=FunctionTool(look)).run(
        job(
            """
            - step: s
              tool:
                - {name: a, kind: noop, result: {n: 1}, set: {bare: 2}}
                - {name: b, kind: python, code: "result = context"}
            """,
            "keychain: [{name: k, kind: bearer, token: hunter2-hunter2}]\n",
            workload={"city": "Paris"},
            ctx={"page": 3},
        )
    )

    (names,) = seen
    assert names["workload"] == {"city": "Paris"}
    assert names["ctx"] == {"city": "Paris", "page": 3}
    assert (names["city"], names["page"], names["a"], names["bare"]) == ("Paris", 3, {"n": 1}, 2)
    assert names["execution_id"] == "77"
    assert "keychain" not in names


async def test_each_render_has_its_own_dice_and_the_real_time() -> None:
    ended = await House().run(
        job(
            """
            - step: s
              tool:
                - {name: a, kind: noop, result: "{{ uuid() }}"}
                - {name: b, kind: noop, result: "{{ uuid() }}"}
                - {name: c, kind: noop, result: "{{ now() }}"}
            """
        )
    )

    tasks = ended.value.tasks
    assert tasks["a"] != tasks["b"]
    assert tasks["c"] == "2026-11-16T10:00:00.000000Z"


async def test_a_template_that_fails_is_the_tasks_failure() -> None:
    ended = await House().run(job("- step: s\n  tool: {kind: noop, result: '{{ 1 / 0 }}'}"))

    assert ended.status == "failed"
    assert ended.error is not None
    assert (ended.error.kind, ended.error.code) == ("transform", "template_failed")
    assert "result" in ended.error.message


class TestWorkbook:
    WORKBOOK = """
        workbook:
          - name: compute
            tool: {kind: http, url: "/{{ a }}/{{ b }}", input: {a: null, b: 2, c: 3}}
        """

    async def run(self, tool: str) -> Any:
        shown = FunctionTool(lambda call: [call.task, call.kind, call.parameters, call.input])
        text = f"- step: s\n  tool: {tool}"
        return await House(http=shown).run(job(text, self.WORKBOOK, workload={"which": "compute"}))

    async def test_its_inputs_are_defaults_and_the_outer_task_has_the_name(self) -> None:
        ended = await self.run("{kind: workbook, name: compute, input: {a: 1}}")

        assert ended.value == ["s", "http", {"url": "/1/2"}, {"a": 1, "b": 2, "c": 3}]

    async def test_its_name_may_be_a_template(self) -> None:
        ended = await self.run("{kind: workbook, name: '{{ which }}', input: {a: 1}}")

        assert ended.value[1] == "http"

    async def test_a_name_that_is_not_there_is_told_apart(self) -> None:
        ended = await self.run("{kind: workbook, name: '{{ which }}x'}")

        assert ended.error is not None
        assert ended.error.kind == "not_found"
        assert "did you mean 'compute'?" in ended.error.message
