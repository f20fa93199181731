"""What a task may call the inputs and results around it."""

import pytest

from noetl.templates.layered import PipelineResult
from noetl.templates.recorded import inline_result
from tests.unit.pipeline.rows import FunctionTool, House, fails, in_turn, job, results


async def test_a_tasks_own_input_may_name_the_steps() -> None:
    shown = FunctionTool(lambda call: call.input)

    ended = await House(http=shown).run(
        job(
            """
            - step: s
              input: {size: "{{ size + 1 }}", fixed: 2}
              tool: {kind: http, url: u, input: {size: "{{ size * 2 }}", more: "{{ fixed + 1 }}"}}
            """,
            workload={"size": 1},
        )
    )

    assert ended.value == {"size": 4, "fixed": 2, "more": 3}


async def test_the_previous_result_is_of_the_last_task_that_succeeded() -> None:
    refused = FunctionTool(in_turn(fails("not_found", value={"n": 404})))

    ended = await House(http=refused).run(
        job(
            """
            - step: s
              tool:
                - {name: a, kind: noop, result: {n: 1}}
                - name: b
                  kind: http
                  url: u
                  spec: {policy: {rules: [{else: {then: {do: continue}}}]}}
                - {name: c, kind: noop, result: ["{{ _prev.n }}", "{{ b.n }}", "{{ output.n }}"]}
            """
        )
    )

    assert isinstance(ended.value, PipelineResult)
    assert ended.value.tasks["c"] == [1, 404, 404]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ("- {step: fetch, next: s}", [1, 1]),
        ("- {step: fetch, next: s}\n- {step: other, next: s}", [None, None]),
    ],
    ids=["one way in", "two ways in"],
)
async def test_result_is_that_of_the_only_step_that_leads_here(
    others: str, expected: list[int | None]
) -> None:
    asking = '- {step: s, tool: {kind: noop, result: ["{{ result.n }}", "{{ response.n }}"]}}'
    given = results(fetch=inline_result({"n": 1}), other=inline_result({"n": 2}))

    ended = await House().run(job(f"{asking}\n{others}", results=given))

    assert ended.value == expected
