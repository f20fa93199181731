"""Effects are recorded before the next one, adopted by a later holder, and doubted only once."""

import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import Call
from noetl.ports.tool import ToolResult
from noetl.templates.recorded import inline_result, value_of
from tests.unit.pipeline.rows import (
    FunctionTool,
    House,
    MemoryJournal,
    counting,
    fails,
    in_turn,
    job,
)

THREE = """
    - step: s
      tool:
        - {name: a, kind: http, url: u, set: {ctx.a: "{{ output.n }}", kept: "{{ output.n }}"}}
        - {name: look, kind: noop, result: "{{ a.n }}"}
        - {name: b, kind: http, url: "{{ kept }}"}
        - {name: c, kind: http, url: u}
    """


async def test_a_lone_effect_is_handed_over_with_the_rows_end() -> None:
    house = House(http=counting())

    ended = await house.run(job("- step: s\n  tool: {kind: http, url: u}"))

    assert house.journal.calls == []
    (call,) = ended.calls
    assert (call.task, call.run, call.effect, call.tries, call.error) == ("s", 1, "fired", 1, None)
    assert call.result is not None
    assert value_of(call.result) == {"n": 1}
    assert (ended.fired, ended.adopted, ended.repeated) == (1, (), ())


async def test_every_effect_but_the_last_is_recorded_before_the_next_one_fires() -> None:
    recorded_at: list[int] = []
    tool = FunctionTool(lambda _: recorded_at.append(len(house.journal.calls)), effect=True)
    house = House(http=tool)

    ended = await house.run(job(THREE.replace(".n", "")))

    assert recorded_at == [0, 1, 2]
    assert [(call.task, call.effect) for call in house.journal.calls] == [
        ("a", "fired"),
        ("b", "fired"),
    ]
    assert [call.task for call in ended.calls] == ["c"]


async def test_a_task_without_effect_is_never_recorded() -> None:
    house = House(http=FunctionTool(lambda _: {"n": 1}, effect=False))

    ended = await house.run(job(THREE))

    assert (house.journal.calls, ended.calls, ended.fired) == ([], (), 0)


@pytest.mark.parametrize(("word", "fired"), [("none", 0), ("at_most_once", 1)])
async def test_the_author_knows_better_than_the_tool(word: str, fired: int) -> None:
    tool = FunctionTool(lambda _: 1, effect=word == "none")

    ended = await House(http=tool).run(
        job(f"- step: s\n  tool: {{kind: http, url: u, effects: {word}}}")
    )

    assert (ended.fired, len(ended.calls)) == (fired, fired)


async def test_what_is_recorded_is_adopted_with_its_writes() -> None:
    tool = counting()
    journal = {
        ("a", 1): Call(
            task="a",
            result=inline_result({"n": 40}),
            writes={"ctx.a": 41, "task.kept": 42},
            effect="fired",
        )
    }

    ended = await House(http=tool).run(job(THREE, journal=journal))

    assert [call.task for call in tool.calls] == ["b", "c"]
    assert tool.calls[0].parameters == {"url": 42}
    assert ended.writes == {"a": 41}
    assert ended.value.tasks["look"] == 40
    assert (ended.adopted, ended.fired, ended.repeated) == (("77/s/1/0/a/1",), 2, ())


async def test_the_first_effect_that_is_not_recorded_is_in_doubt_and_only_that_one() -> None:
    tool = counting()
    journal = {("a", 1): Call(task="a", result=inline_result({"n": 40}), effect="fired")}
    house = House(http=tool)

    ended = await house.run(job(THREE, journal=journal, has_predecessor=True))

    assert [(call.task, call.effect) for call in (*house.journal.calls, *ended.calls)] == [
        ("b", "repeated"),
        ("c", "fired"),
    ]
    assert ended.repeated == ("77/s/1/0/b/1",)
    assert (ended.adopted, ended.fired) == (("77/s/1/0/a/1",), 2)


class TestAtMostOnce:
    TEXT = """
        - step: s
          tool:
            - {name: a, kind: http, url: u, effects: at_most_once}
            - {name: b, kind: http, url: u, effects: at_most_once}
        """

    async def test_in_doubt_it_does_not_run(self) -> None:
        tool = counting()

        ended = await House(http=tool).run(job(self.TEXT, has_predecessor=True))

        assert tool.calls == []
        assert ended.error is not None
        assert ended.error.kind == "effect_in_doubt"
        assert "retry the step" in ended.error.message
        (call,) = ended.calls
        assert (call.task, call.effect, call.error) == ("a", None, ended.error)

    async def test_a_rule_may_go_on_without_it_and_the_next_is_not_in_doubt(self) -> None:
        rule = "{when: \"{{ output.error.kind == 'effect_in_doubt' }}\", then: {do: continue}}"
        text = self.TEXT.replace(
            "effects: at_most_once}",
            f"effects: at_most_once, spec: {{policy: {{rules: [{rule}]}}}}}}",
        )
        tool = counting()

        ended = await House(http=tool).run(job(text, has_predecessor=True))

        assert (ended.status, [call.task for call in tool.calls]) == ("ok", ["b"])
        assert ended.fired == 1

    async def test_a_retry_of_the_step_runs_what_was_refused(self) -> None:
        refused = await House(http=counting()).run(job(self.TEXT, has_predecessor=True))
        journal = {(call.task, call.run): call for call in refused.calls}
        tool = counting()

        ended = await House(http=tool).run(job(self.TEXT, journal=journal))

        assert (ended.status, [call.task for call in tool.calls]) == ("ok", ["a", "b"])

    async def test_without_an_earlier_holder_there_is_no_doubt(self) -> None:
        tool = counting()

        ended = await House(http=tool).run(job(self.TEXT))

        assert (ended.status, len(tool.calls)) == ("ok", 2)


class TestRecordedErrors:
    TEXT = """
        - step: s
          tool:
            - name: a
              kind: http
              url: u
              spec: {policy: {rules: [
                {when: "{{ output.error.kind == 'timeout' and output.http.status == 504 }}",
                 then: {do: continue, set: {ctx.skipped: true}}}]}}
            - {name: b, kind: http, url: u}
        """

    async def test_an_error_that_rules_pass_over_is_adopted(self) -> None:
        house = House(
            http=FunctionTool(in_turn(fails("timeout", http={"status": 504}), 1), effect=True)
        )
        first = await house.run(job(self.TEXT))
        tool = counting()

        ended = await House(http=tool).run(job(self.TEXT, journal=house.journal.by_cycle()))

        assert (first.status, ended.status) == ("ok", "ok")
        assert [call.task for call in tool.calls] == ["b"]
        assert (len(ended.adopted), ended.writes) == (1, {"skipped": True})

    async def test_an_error_that_ended_the_row_is_run_again(self) -> None:
        failure = Failure(kind="auth", message="no")
        tool = counting()

        ended = await House(http=tool).run(
            job(self.TEXT, journal={("a", 1): Call(task="a", error=failure, effect="fired")})
        )

        assert [call.task for call in tool.calls] == ["a", "b"]
        assert (ended.status, ended.adopted) == ("ok", ())

    async def test_a_result_that_a_rule_called_a_failure_is_run_again(self) -> None:
        rule = "{when: \"{{ output.data == 'bad' }}\", then: {do: fail}}"
        text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"
        first = await House(http=FunctionTool(in_turn("bad"), effect=True)).run(job(text))
        journal = {(call.task, call.run): call for call in first.calls}
        tool = FunctionTool(in_turn("good"), effect=True)

        second = await House(http=tool).run(job(text, journal=journal))

        assert (first.status, second.status, second.value) == ("failed", "ok", "good")

    @pytest.mark.parametrize("code", ["failed_by_rule", "step_timeout"])
    async def test_a_failure_that_no_rule_had_a_say_in_is_not_passed_over(self, code: str) -> None:
        rule = "{when: \"{{ output.status == 'error' }}\", then: {do: continue}}"
        text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"
        failure = Failure(kind="unknown", message="no", code=code)
        tool = counting()

        ended = await House(http=tool).run(
            job(text, journal={("s", 1): Call(task="s", error=failure, effect="fired")})
        )

        assert (ended.value, ended.adopted) == ({"n": 1}, ())

    async def test_a_result_is_not_fired_again_because_a_rule_changed_its_mind(self) -> None:
        rule = '{when: "{{ ctx.strict }}", then: {do: fail}}'
        text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"
        first = await House(http=counting()).run(job(text))
        journal = {(call.task, call.run): call for call in first.calls}
        tool = counting()

        second = await House(http=tool).run(job(text, journal=journal, ctx={"strict": True}))

        assert (first.status, second.status, tool.calls) == ("ok", "failed", [])

    async def test_a_failed_effect_is_handed_over_too(self) -> None:
        tool = FunctionTool(in_turn(fails("timeout", "slow", value={"n": 1})), effect=True)

        ended = await House(http=tool).run(job("- step: s\n  tool: {kind: http, url: u}"))

        (call,) = ended.calls
        assert (call.effect, call.error) == ("fired", Failure(kind="timeout", message="slow"))
        assert call.result is not None
        assert (call.result.status, value_of(call.result)) == ("error", {"n": 1})


async def test_a_retry_is_the_same_cycle() -> None:
    then = "{do: retry, set: {ctx.n: '{{ _attempt }}'}}"
    rule = f"{{when: \"{{{{ output.status == 'error' }}}}\", then: {then}}}"
    text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"
    tool = FunctionTool(in_turn(fails("timeout"), fails("timeout"), 1), effect=True)

    ended = await House(http=tool).run(job(text, has_predecessor=True))

    assert {call.idempotency_key for call in tool.calls} == {"77/s/1/0/s/1"}
    (call,) = ended.calls
    assert (call.run, call.tries, call.effect, call.writes) == (1, 3, "repeated", {"ctx.n": 2})
    assert ended.fired == 1


async def test_a_large_result_is_recorded_by_reference_and_adopted_whole() -> None:
    large = {"rows": [{"id": number, "text": "x" * 100} for number in range(2_000)]}
    text = """
        - step: s
          tool:
            - {name: a, kind: http, url: u, set: {doc: "{{ output.rows }}"}}
            - {name: b, kind: http, url: "{{ doc | length }}/{{ a.rows[1999].id }}"}
        """
    house = House(http=FunctionTool(in_turn(large, 1), effect=True))
    await house.run(job(text))
    (recorded,) = house.journal.calls
    house.journal = MemoryJournal()
    assert recorded.result is not None
    assert recorded.result.reference is not None
    assert recorded.writes == {}  # too large: made again from the result

    ended = await house.run(job(text, journal={("a", 1): recorded}))

    assert len(ended.adopted) == 1
    assert ended.value.tasks["a"] == large


async def test_an_adopted_result_is_judged_by_what_the_tool_said_beside_it() -> None:
    rule = '{when: "{{ output.http.status == 202 and limit == 5 }}", then: {do: break}}'
    text = f"""
        - step: s
          tool:
            - {{name: a, kind: http, url: u, input: {{limit: "{{{{ 2 + 3 }}}}"}},
               spec: {{policy: {{rules: [{rule}]}}}}}}
            - {{name: b, kind: http, url: u}}
        """
    tool = FunctionTool(lambda _: ToolResult(value=1, http={"status": 202}), effect=True)
    first = await House(http=tool).run(job(text))
    journal = {(call.task, call.run): call for call in first.calls}

    second = await House(http=counting()).run(job(text, journal=journal))

    assert (first.status, second.status, len(second.adopted)) == ("break", "break", 1)
