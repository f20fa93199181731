"""Whenever a holder dies, the next one fires what is missing, and doubts one effect at most."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from noetl.domain.work import Call
from noetl.kernel.errors import ClaimLost
from noetl.pipeline.job import Job
from noetl.ports.tool import ToolCall
from tests.unit.pipeline.rows import FunctionTool, House, fails, job

# An effect may fail and be passed over, write names, or send the row back to the start.
TASKS = {
    "effect": "{{name: t{n}, kind: http, url: u, set: {{ctx.t{n}: '{{{{ output.n }}}}'}}}}",
    "quiet": "{{name: t{n}, kind: noop, result: {{n: {n}}}}}",
    "flaky": (
        "{{name: t{n}, kind: http, url: fail, spec: {{policy: {{rules: ["
        "{{when: '{{{{ output.error.kind == \"timeout\" }}}}', then: {{do: continue,"
        " set: {{ctx.lost: {n}}}}}}}]}}}}}}"
    ),
    "round": (
        "{{name: t{n}, kind: http, url: u, spec: {{policy: {{rules: ["
        "{{when: '{{{{ (iter.r{n} | default(0)) < 1 }}}}', then: {{do: jump, to: t0,"
        " set: {{iter.r{n}: '{{{{ (iter.r{n} | default(0)) + 1 }}}}'}}}}}}]}}}}}}"
    ),
}


class World:
    """Counts how often each cycle was fired, over all holders; the `dies_at`th firing is fatal."""

    def __init__(self) -> None:
        self.fired: Counter[str] = Counter()
        self.left: int | None = None

    def fire(self, call: ToolCall) -> dict[str, int]:
        self.fired[call.idempotency_key] += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ClaimLost("the worker", "died")
        if call.parameters["url"] == "fail":
            raise fails("timeout")
        return {"n": len(call.idempotency_key)}


def pipeline(kinds: list[str]) -> Job:
    tasks = "\n".join(f"    - {TASKS[kind].format(n=n)}" for n, kind in enumerate(kinds))
    return job(f"- step: s\n  tool:\n{tasks}")


async def run(world: World, work: Job, dies_at: int | None) -> tuple[list[Call], object]:
    """What was recorded, and how the row ended: None when its holder died."""
    house = House(http=FunctionTool(world.fire, effect=True))
    world.left = dies_at
    try:
        ended = await house.run(work)
    except ClaimLost:
        return house.journal.calls, None
    return [*house.journal.calls, *ended.calls], ended


@given(
    kinds=st.lists(st.sampled_from(sorted(TASKS)), min_size=1, max_size=5),
    deaths=st.lists(st.integers(0, 6), max_size=3),
)
@settings(max_examples=60, deadline=None)
async def test_every_effect_is_fired_once_and_once_more_only_where_a_holder_died(
    kinds: list[str], deaths: list[int]
) -> None:
    work, undisturbed, world = pipeline(kinds), World(), World()
    expected, calm = await run(undisturbed, work, None)
    journal: dict[tuple[str, int], Call] = {}
    repeats = 0

    ended = None
    for dies_at in (*deaths, None):
        calls, ended = await run(
            world, replace(work, journal=journal, has_predecessor=bool(repeats)), dies_at
        )
        assert not journal.keys() & {(call.task, call.run) for call in calls}
        journal |= {(call.task, call.run): call for call in calls}
        if ended is not None:
            break
        repeats += 1

    assert ended is not None
    assert set(world.fired) == set(undisturbed.fired)
    assert sum(world.fired.values()) - len(world.fired) == repeats
    assert ended.status == calm.status  # type: ignore[attr-defined]
    assert ended.writes == calm.writes  # type: ignore[attr-defined]
    assert ended.value == calm.value  # type: ignore[attr-defined]
    assert journal.keys() == {(call.task, call.run) for call in expected}
    assert sum(call.effect == "repeated" for call in journal.values()) <= repeats


@pytest.mark.parametrize("survives", [1, 2, 3])
async def test_a_holder_that_dies_while_recording_leaves_it_recorded(survives: int) -> None:
    work, world = pipeline(["effect"] * 4), World()
    house = House(http=FunctionTool(world.fire, effect=True))
    house.journal = type(house.journal)(survives)
    with pytest.raises(ClaimLost):
        await house.run(work)

    _, ended = await run(
        world, replace(work, journal=house.journal.by_cycle(), has_predecessor=True), None
    )

    assert ended is not None
    assert set(world.fired.values()) == {1}
