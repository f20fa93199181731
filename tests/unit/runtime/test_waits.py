"""A step that only waits is nobody's work: it is due once, whatever happens meanwhile."""

import pytest

from noetl.decider.waits import TIMER
from noetl.domain.events import CommandClaimed, CommandFailed
from noetl.kernel.instant import seconds_between
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.explain import explain
from noetl.testing.desk_words import types, worker
from tests.unit.runtime.desk_scene import WORKER, Scene

WAITING = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waiting, path: waits/waiting}
workload: {pause: 3600}
workflow:
  - step: a_while
    tool: {kind: wait, seconds: "{{ workload.pause }}"}
    set: {ctx.until: "{{ output.until }}"}
    next: after
  - step: after
    tool: {kind: noop}
"""


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_it_is_given_to_no_worker_and_goes_on_when_it_is_due(scene: Scene) -> None:
    execution = await scene.start(WAITING)
    assert await scene.claim() == []
    await scene.pass_time(3_599)
    assert await scene.claim() == []

    await scene.pass_time(1)
    (after,) = await scene.claim()

    assert after.step == "after"
    (claimed,) = [
        each.event
        for each in await scene.events(execution)
        if isinstance(each.event, CommandClaimed) and each.event.worker_id == TIMER
    ]
    assert after.facts.ctx == {"until": claimed.lease_until}
    await scene.finish(after)
    assert await scene.status(execution) == "COMPLETED"


async def test_no_worker_gets_it_before_the_clock_has_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when an append is full after the command was issued."""
    with monkeypatch.context() as full:
        full.setattr("noetl.decider.decide.timers_set", lambda _: [])
        execution = await scene.start(WAITING)
        assert await scene.claim() == []

    scene.coordinator.poke(execution)
    await scene.pass_time(3_600)

    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_when_it_is_due_is_recorded_once(scene: Scene) -> None:
    """A restart in the middle of it changes nothing, and neither does one after it was due."""
    execution = await scene.start(WAITING)
    for _ in range(3):
        await scene.clock.advance(1_000)
        scene.rebuild()
        await scene.coordinator.load(execution)
        await scene.pass_time(0)
    before = types(await scene.events(execution))
    scene.rebuild()
    await scene.clock.advance(5_000)
    await scene.coordinator.load(execution)
    await scene.pass_time(0)

    assert before.count("command.claimed") == 1
    assert "command.completed" not in before
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_late_reaper_takes_nothing_back(scene: Scene) -> None:
    """The claim of the clock runs out like a lease, but nobody was lost."""
    execution = await scene.start(WAITING)
    await scene.pass_time(10_000)

    assert types(await scene.events(execution)).count("command.completed") == 1
    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_paused_execution_does_not_go_on_before_it_is_resumed(scene: Scene) -> None:
    execution = await scene.start(WAITING)
    await scene.control.pause(DEFAULT_SCOPE, execution)
    await scene.pass_time(4_000)
    assert "command.completed" not in types(await scene.events(execution))

    await scene.control.resume(DEFAULT_SCOPE, execution)
    await scene.pass_time(0)

    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_a_cancel_ends_it(scene: Scene) -> None:
    execution = await scene.start(WAITING)
    await scene.cancel(execution)
    events = await scene.events(execution)

    await scene.pass_time(4_000)

    assert await scene.status(execution) == "CANCELLED"
    assert await scene.events(execution) == events


async def test_a_worker_that_starts_anew_takes_nothing_from_the_clock(scene: Scene) -> None:
    execution = await scene.start(WAITING)
    await scene.desk.register(worker(boot="2"))
    await scene.desk.deregister(WORKER)

    assert types(await scene.events(execution)).count("command.claimed") == 1
    await scene.pass_time(3_600)
    assert await scene.run_to_the_end(execution) == "COMPLETED"


@pytest.mark.parametrize("pause", ["soon", -1, None, "{{ 1 / 0 }}"])
async def test_what_is_no_time_fails_the_step(scene: Scene, pause: object) -> None:
    execution = await scene.start(WAITING, pause=pause)

    (failed,) = [
        each.event
        for each in await scene.events(execution)
        if isinstance(each.event, CommandFailed)
    ]
    assert "the wait of step 'a_while'" in failed.error.message
    assert await scene.status(execution) == "FAILED"


async def test_it_is_explained_until_when_it_waits(scene: Scene) -> None:
    execution = await scene.start(WAITING)
    running = await scene.coordinator.load(execution)
    (row,) = running.state.commands.values()

    told = " ".join(explain(running.state, running.plan, scene.clock.now()))

    assert row.lease_until is not None
    assert seconds_between(scene.clock.now(), row.lease_until) == 3_600
    assert "Step a_while waits until" in told
    assert "worker" not in told


async def test_the_reaper_comes_when_something_is_due(scene: Scene) -> None:
    await scene.start(WAITING, pause=0.25)

    assert 0 < scene.reaper._pause_seconds() <= 0.25
