"""A row says that it may fire before it does, and how often it has tried."""

from noetl.domain.work import Call
from noetl.templates.recorded import inline_result
from tests.unit.pipeline.rows import FunctionTool, House, counting, fails, in_turn, job
from tests.unit.pipeline.test_effects import THREE

ONCE = """
    - step: s
      tool:
        - {name: a, kind: http, url: u, effects: at_most_once}
        - {name: b, kind: http, url: u, effects: at_most_once}
    """


async def test_a_row_says_once_and_beforehand_that_it_may_fire() -> None:
    begun_at: list[int] = []
    tool = FunctionTool(lambda _: begun_at.append(len(house.journal.begun)), effect=True)
    house = House(http=tool)

    await house.run(job(THREE.replace(".n", "")))

    assert begun_at == [1, 1, 1]
    assert house.journal.begun == [False]


async def test_a_row_without_effects_says_nothing() -> None:
    house = House(http=FunctionTool(lambda _: {"n": 1}, effect=False))
    await house.run(job(THREE))
    assert house.journal.begun == []


async def test_what_must_not_run_twice_begins_alone() -> None:
    house = House(http=counting())
    await house.run(job(ONCE))
    assert house.journal.begun == [True]


async def test_what_was_refused_is_named() -> None:
    ended = await House(http=counting()).run(job(ONCE, has_predecessor=True))
    assert (ended.in_doubt, ended.repeated) == (("77/s/1/0/a/1",), ())


async def test_what_an_earlier_holder_had_repeated_stays_repeated_when_it_is_adopted() -> None:
    """That holder was lost before it could report, so nobody else will say it."""
    journal = {("a", 1): Call(task="a", result=inline_result({"n": 40}), effect="repeated")}

    ended = await House(http=counting()).run(job(THREE, journal=journal))

    assert (ended.repeated, ended.adopted, ended.fired) == (("77/s/1/0/a/1",), (), 3)


class TestTries:
    RULE = "{when: \"{{ output.error.kind == 'timeout' }}\", then: {do: retry, attempts: 5}}"
    TEXT = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{RULE}]}}}}}}"

    async def test_each_try_that_failed_is_noted(self) -> None:
        house = House(
            http=FunctionTool(in_turn(fails("timeout"), fails("timeout"), 1), effect=True)
        )

        ended = await house.run(job(self.TEXT))

        assert [(call.tries, call.result) for call in house.journal.tries] == [(1, None), (2, None)]
        assert ended.calls[0].tries == 3

    async def test_the_next_holder_goes_on_counting(self) -> None:
        tool = FunctionTool(in_turn(fails("timeout")), effect=True)
        journal = {("s", 1): Call(task="s", effect="fired", tries=3)}

        ended = await House(http=tool).run(job(self.TEXT, journal=journal, has_predecessor=True))

        assert (ended.status, [call.attempt for call in tool.calls]) == ("failed", [4, 5])
        assert ended.repeated == ("77/s/1/0/s/1",)

    async def test_tries_without_effect_are_not_noted(self) -> None:
        house = House(http=FunctionTool(in_turn(fails("timeout"), 1)))
        await house.run(job(self.TEXT))
        assert house.journal.tries == []
