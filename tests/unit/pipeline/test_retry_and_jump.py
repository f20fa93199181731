"""Trying again with pauses, and going back to an earlier task."""

from typing import Any

import pytest

from noetl.domain.playbook.task import Backoff
from noetl.pipeline import row
from noetl.pipeline.retry import PAUSE_SECONDS_MAX, bounded, pause_seconds, spread
from tests.unit.pipeline.rows import FunctionTool, House, fails, in_turn, job, one_task


class TestRetry:
    async def run(self, then: str, *outcomes: Any, **fields: Any) -> tuple[Any, list[float], int]:
        tool, house = FunctionTool(in_turn(*outcomes)), None
        house = House(http=tool)
        rule = "{when: \"{{ output.status == 'error' }}\", then: {do: retry, " + then + "}}"
        ended = await house.run(job(one_task(rule), **fields))
        return ended, house.clock.slept, len(tool.calls)

    @pytest.mark.parametrize(
        ("then", "slept"),
        [
            ("attempts: 4, delay: 2", [2, 2, 2]),
            ("attempts: 4, delay: 2, backoff: none", [0, 0, 0]),
            ("attempts: 4, delay: 2, backoff: linear", [2, 4, 6]),
            ("attempts: 4, delay: 2, backoff: exponential", [2, 4, 8]),
            ("attempts: 4, delay: 2, backoff: exponential, multiplier: 3", [2, 6, 18]),
            ("attempts: 3, delay: 2, backoff: exponential, multiplier: '{{ tries }}'", [2, 8]),
            ("attempts: 4, delay: 2, backoff: linear, max_delay: 5", [2, 4, 5]),
            ("attempts: '{{ tries }}', delay: '{{ pause }}'", [3, 3, 3]),
            ("attempts: 1", []),
        ],
    )
    async def test_attempts_are_counted_in_total(self, then: str, slept: list[float]) -> None:
        workload = {"tries": 4, "pause": "3s"}
        ended, pauses, calls = await self.run(then, fails("timeout", "slow"), workload=workload)

        assert ended.error is not None
        assert (ended.status, ended.error.message) == ("failed", "slow")
        assert (pauses, calls) == (slept, len(slept) + 1)

    async def test_it_goes_on_once_it_succeeds(self) -> None:
        error = fails("timeout")
        ended, pauses, calls = await self.run("attempts: 9, delay: 1", error, error, 5)

        assert (ended.status, ended.value.tasks["t"]) == ("ok", 5)
        assert (len(pauses), calls) == (2, 3)

    async def test_success_resets_the_count(self) -> None:
        error = fails("timeout")
        text = """
            - step: s
              tool:
                - name: t
                  kind: http
                  url: "{{ _attempt }}"
                  spec: {policy: {rules: [
                    {when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 2}}]}}
                - name: back
                  kind: noop
                  set: {ctx.n: "{{ ctx.n | default(0) + 1 }}"}
                  spec: {policy: {rules: [
                    {when: "{{ ctx.n | default(0) < 2 }}", then: {do: jump, to: t}}]}}
            """
        tool = FunctionTool(in_turn(error, 1, error, 2, error, 3))

        ended = await House(http=tool).run(job(text))

        assert (ended.status, len(tool.calls)) == ("ok", 6)
        assert [call.parameters["url"] for call in tool.calls] == [1, 2, 1, 2, 1, 2]

    async def test_attempts_that_are_no_number_fail_the_task(self) -> None:
        ended, _, calls = await self.run("attempts: '{{ \"many\" }}'", fails("timeout"))

        assert ended.error is not None
        assert (ended.error.kind, calls) == ("schema", 1)
        assert "attempts in a retry of t is 'many'" in ended.error.message

    async def test_jitter_shortens_or_adds(self) -> None:
        _, shorter, _ = await self.run("attempts: 2, delay: 10, jitter: true", fails("timeout"))
        _, longer, _ = await self.run("attempts: 2, delay: 10, jitter: 4", fails("timeout"))

        assert 5 <= shorter[0] < 10 < longer[0] < 14

    def test_pauses_have_an_upper_bound(self) -> None:
        backoff: Backoff = "exponential"
        grown = pause_seconds(backoff, 1.0, 2.0, 5_000)

        assert bounded(grown, None) == PAUSE_SECONDS_MAX
        assert bounded(spread(10.0, 5, 0.5), 11.0) == 11.0


class TestJump:
    DRAIN = """
        - step: s
          tool:
            - name: claim
              kind: http
              url: "{{ iter.page | default(1) }}"
              spec: {policy: {rules: [{when: "{{ output.data == [] }}", then: {do: break}}]}}
            - name: work
              kind: noop
              result: "{{ claim[0] }}"
              spec: {policy: {rules: [{else: {do: jump, to: claim,
                set: {iter.page: "{{ (iter.page | default(1)) + 1 }}",
                      ctx.sum: "{{ (ctx.sum | default(0)) + output.data }}"}}}]}}
        """

    async def test_a_pipeline_may_go_round(self) -> None:
        tool = FunctionTool(in_turn([5], [6], []))

        ended = await House(http=tool).run(job(self.DRAIN))

        assert (ended.status, ended.writes) == ("break", {"sum": 11})
        assert [call.parameters["url"] for call in tool.calls] == [1, 2, 3]
        assert dict(ended.value.tasks) == {"work": 6, "claim": []}
        assert list(ended.value.tasks) == ["work", "claim"]
        keys = [call.idempotency_key for call in tool.calls]
        assert keys == ["77/s/1/0/claim/1", "77/s/1/0/claim/2", "77/s/1/0/claim/3"]

    @pytest.mark.parametrize("word", ["previous", "prev"])
    async def test_back_by_one(self, word: str) -> None:
        tool = FunctionTool(in_turn(1, 2))
        text = f"""
            - step: s
              tool:
                - {{name: a, kind: http, url: u}}
                - name: b
                  kind: noop
                  spec: {{policy: {{rules: [
                    {{when: "{{{{ a < 2 }}}}", then: {{do: jump, to: {word}}}}}]}}}}
            """

        ended = await House(http=tool).run(job(text))

        assert (ended.status, len(tool.calls)) == ("ok", 2)

    async def test_the_first_task_has_none_before_it(self) -> None:
        text = """
            - step: s
              tool:
                - name: a
                  kind: noop
                  spec: {policy: {rules: [{else: {do: jump, to: previous}}]}}
            """
        with pytest.raises(AssertionError, match="previous"):
            job(text)

    async def test_going_round_for_ever_is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(row, "TASK_RUNS_MAX", 1_000)
        house = House()

        ended = await house.run(
            job(
                """
                - step: s
                  tool:
                    - {name: a, kind: noop, spec: {policy: {rules: [{else: {do: jump, to: a}}]}}}
                """
            )
        )

        assert ended.error is not None
        assert (ended.status, ended.error.code) == ("failed", "endless")
        assert house.clock.slept == [0, 0, 0]
