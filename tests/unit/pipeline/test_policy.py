"""The first rule that holds decides what an outcome means."""

from typing import Any

import pytest

from noetl.ports.tool import ToolResult
from tests.unit.pipeline.rows import FunctionTool, House, fails, in_turn, job, one_task


async def test_without_a_rule_a_result_goes_on_and_an_error_fails() -> None:
    good = await House(http=FunctionTool(in_turn(1))).run(job(one_task()))
    bad = await House(http=FunctionTool(in_turn(fails("auth", "no")))).run(job(one_task()))

    assert (good.status, dict(good.value.tasks)) == ("ok", {"t": 1, "after": "ok"})
    assert bad.status == "failed"
    assert bad.error is not None
    assert (bad.error.kind, bad.error.message) == ("auth", "no")


async def test_a_failure_takes_what_the_target_said_along_for_arcs() -> None:
    http = {"status": 429, "headers": {"retry-after": "1"}}
    error = fails("rate_limit", http=http, pg={"code": "P"}, py={"exception": "E", "traceback": ""})

    ended = await House(http=FunctionTool(in_turn(error))).run(job(one_task()))

    assert ended.error is not None
    assert ended.error.detail == {
        "http": {"status": 429},
        "pg": {"code": "P"},
        "py": {"exception": "E"},
    }


async def test_rules_see_the_envelope() -> None:
    rule = (
        "{when: \"{{ output.status == 'error' and output.http.status == 429"
        " and output.error.kind == 'rate_limit' and output.error.retryable"
        " and output.error.status == 429 and output.error.code == '429x'"
        " and output.data.detail == 'slow' and output.meta.attempt == 1"
        " and output.py.exception == 'E' and output.pg.code == 'P' }}\","
        " then: {do: continue, set: {ctx.seen: true}}}"
    )
    error = fails("rate_limit", retryable=True, value={"detail": "slow"}, http={"status": 429})
    error.py, error.pg = {"exception": "E"}, {"code": "P"}
    error.failure = type(error.failure)(
        kind="rate_limit", message="slow down", retryable=True, code="429x"
    )

    ended = await House(http=FunctionTool(in_turn(error))).run(job(one_task(rule)))

    assert (ended.status, ended.writes) == ("ok", {"seen": True})


async def test_the_first_that_holds_decides_and_one_that_raises_is_passed_over() -> None:
    ended = await House(http=FunctionTool(in_turn(1))).run(
        job(
            one_task(
                '{when: "{{ 1 / 0 }}", then: {do: fail}}',
                '{when: "{{ false }}", then: {do: fail}}',
                '{when: "{{ output.data == 1 }}", then: {do: continue, set: {ctx.by: 3}}}',
                "{else: {do: fail}}",
            )
        )
    )

    assert (ended.status, ended.writes) == ("ok", {"by": 3})


@pytest.mark.parametrize(
    ("given", "is_broken"),
    [
        ({"error": {"retryable": True}}, True),
        ({"status_code": 200, "data": {"error": {"retryable": True}}}, True),
        ({"data": {"error": {"retryable": True}}}, False),
        ({"status_code": 200, "data": {"error": {"retryable": False}}}, False),
        ({"status_code": 200, "data": "error"}, False),
        ("error", False),
        (fails("server_error", retryable=True), True),
        (fails("server_error", retryable=False), False),
    ],
)
@pytest.mark.parametrize("name", ["output", "outcome"])
async def test_a_rule_about_the_error_finds_that_of_the_task_and_the_results_own(
    given: Any, is_broken: bool, name: str
) -> None:
    rules = f'{{when: "{{{{ {name}.error.retryable }}}}", then: {{do: break}}}}'
    compared = f'{{when: "{{{{ {name}.error.retryable == true }}}}", then: {{do: break}}}}'

    for rule in (rules, compared):
        ended = await House(http=FunctionTool(in_turn(given))).run(job(one_task(rule)))
        assert (ended.status == "break") is is_broken


async def test_an_error_that_is_passed_over_leaves_no_result_unless_it_brought_one() -> None:
    rule = "{else: {do: continue}}"
    without = FunctionTool(in_turn(fails("timeout")))
    with_body = FunctionTool(in_turn(fails("not_found", value={"code": 4})))
    more = 'set: {ctx.code: "{{ output.code }}"}'

    bare = await House(http=without).run(job(one_task(rule, more=more)))
    full = await House(http=with_body).run(job(one_task(rule, more=more)))

    assert (dict(bare.value.tasks), bare.writes) == ({"after": "error"}, {})
    assert dict(full.value.tasks) == {"t": {"code": 4}, "after": "error"}
    assert full.writes == {"code": 4}


async def test_break_ends_the_row_well() -> None:
    ended = await House(http=FunctionTool(in_turn(1))).run(job(one_task("{else: {do: break}}")))

    assert (ended.status, dict(ended.value.tasks)) == ("break", {"t": 1})


async def test_fail_gives_the_error_or_names_the_rule() -> None:
    rule = "{else: {do: fail, set: {ctx.why: '{{ output.data }}'}}}"

    good = await House(http=FunctionTool(in_turn(1))).run(job(one_task(rule)))
    bad = await House(http=FunctionTool(in_turn(fails("auth")))).run(job(one_task(rule)))

    assert good.error is not None
    assert (good.status, good.error.kind, good.writes) == ("failed", "unknown", {"why": 1})
    assert "one of its rules" in good.error.message
    assert bad.error is not None
    assert bad.error.kind == "auth"


class TestSet:
    async def test_every_scope_has_its_readers(self) -> None:
        ended = await House().run(
            job(
                """
                - step: s
                  tool:
                    - name: a
                      kind: noop
                      result: {n: 1}
                      set: {doc: "{{ output }}", ctx.total: "{{ output.n + 1 }}",
                            step.x: "{{ ctx.total }}"}
                      spec: {policy: {rules: [{else: {do: continue,
                        set: {iter.page: "{{ doc.n + 10 }}", ctx.deep.er: 5}}}]}}
                    - name: b
                      kind: noop
                      result: ["{{ doc.n }}", "{{ total }}", "{{ ctx.total }}",
                               "{{ iter.page }}", "{{ ctx.deep.er }}", "{{ ctx.deep.old }}"]
                """,
                ctx={"deep": {"old": 6}},
            )
        )

        assert ended.value.tasks["b"] == [1, 2, 2, 11, 5, 6]
        assert list(ended.writes.items()) == [("total", 2), ("x", 2), ("deep.er", 5)]

    async def test_a_result_that_will_be_tried_again_sets_nothing(self) -> None:
        text = one_task(
            "{when: \"{{ output.data == 'pending' }}\", then: {do: retry, attempts: 5}}",
            more='set: {ctx.total: "{{ ctx.total + 1 }}"}',
        )

        ended = await House(http=FunctionTool(in_turn("pending", "pending", "done"))).run(
            job(text, ctx={"total": 0})
        )

        assert ended.writes == {"total": 1}

    async def test_a_result_that_a_rule_calls_a_failure_sets_nothing(self) -> None:
        text = one_task("{else: {do: fail}}", more='set: {ctx.n: "{{ output }}"}')

        ended = await House(http=FunctionTool(in_turn(1))).run(job(text))

        assert (ended.status, ended.writes) == ("failed", {})

    async def test_what_an_earlier_row_wrote_is_seen_and_the_facts_stay_as_they_were(self) -> None:
        text = "- step: s\n  tool: {kind: noop, set: {ctx.n: '{{ ctx.n + 1 }}'}}"
        given = job(text, workload={"n": 1})

        first = await House().run(given)
        second = await House().run(job(text, workload={"n": 1}, ctx={"n": 7}))

        assert (first.writes, second.writes) == ({"n": 2}, {"n": 8})
        assert (given.facts.ctx, given.ctx) == ({}, {})

    async def test_a_value_that_cannot_be_made_fails_the_task(self) -> None:
        ended = await House().run(
            job("- step: s\n  tool: {kind: noop, set: {ctx.n: '{{ 1 / 0 }}'}}")
        )

        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "transform")

    async def test_what_goes_to_the_log_has_a_bound(self) -> None:
        ended = await House().run(
            job(
                "- step: s\n  tool: {kind: noop, result: '{{ x }}', set: {ctx.n: '{{ output }}'}}",
                workload={"x": "y" * 70_000},
            )
        )

        assert ended.error is not None
        assert ended.error.kind == "schema"
        assert "65,536 bytes to ctx with 'n'" in ended.error.message


async def test_a_rule_can_judge_what_the_tool_said_beside_its_value() -> None:
    rule = '{when: "{{ output.http.status == 202 }}", then: {do: continue, set: {ctx.late: true}}}'
    tool = FunctionTool(lambda _: ToolResult(value={}, http={"status": 202}))

    ended = await House(http=tool).run(job(one_task(rule)))

    assert ended.writes == {"late": True}
