"""After a start everything that was open goes on, and only the dead have lost their work."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.domain.log import APPEND_EVENTS_MAX, StreamHead
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.runtime.coordinator import Wish
from noetl.runtime.projector import Projector
from noetl.runtime.recovery import AT_ONCE_MAX, Recovery
from noetl.testing.desk_words import (
    CHAIN,
    ROWS,
    child_of,
    claim_of,
    count,
    ended,
    name_of,
    said_to,
    worker,
)
from tests.unit.runtime.desk_scene import WORKER, Scene
from tests.unit.runtime.obedient_log import ObedientLog

DEAD, ALIVE = worker("dead", slots=1_000), worker("alive")


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


async def resume(scene: Scene, *dead: str, scope: Scope = DEFAULT_SCOPE) -> list[ExecutionId]:
    scene.rebuild()
    projections = MemoryProjectionStore()
    gone = frozenset(map(WorkerId, dead))
    projector = Projector(scene.log, projections)
    recovery = Recovery(scene.coordinator, projector, projections, dead=gone)
    found = await recovery.resume(scope)
    await scene.coordinator.drain()
    return found


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_only_dead_workers_lose_what_they_hold(scene: Scene, text: str) -> None:
    for _ in range(2):
        await scene.start(text, count=1)
    (lost,) = await scene.claim(1, DEAD)
    (kept,) = await scene.claim(1, ALIVE)

    await resume(scene, "dead")
    (again,) = await scene.claim()

    assert (name_of(again), claim_of(again)) == (name_of(lost), 2)
    assert await said_to(scene.report(ended(lost, DEAD))) == "lost"
    assert await said_to(scene.report(ended(kept, ALIVE))) == "recorded"
    assert await said_to(scene.report(ended(again, WORKER))) == "recorded"


async def test_what_a_new_boot_of_a_dead_worker_holds_is_not_taken_from_it(scene: Scene) -> None:
    """It may have asked for work before everything was gone through."""
    await scene.start(ROWS, count=2)
    await scene.claim(2, worker("local", boot="1"))
    scene.rebuild()
    after = worker("local", boot="2")
    (execution,) = {stored.execution_id for stored in await scene.log.tail()}
    await scene.coordinator.load(execution)
    await scene.desk.register(after)
    works = await scene.claim(2, after)
    projections = MemoryProjectionStore()
    projector, dead = Projector(scene.log, projections), frozenset({WorkerId("local")})
    recovery = Recovery(scene.coordinator, projector, projections, dead=dead)

    await recovery.resume(DEFAULT_SCOPE)

    assert [claim_of(work) for work in works] == [2, 2]
    for work in works:
        assert await said_to(scene.report(ended(work, after))) == "recorded"


async def test_every_open_execution_goes_on_and_no_other(scene: Scene) -> None:
    running, paused, cancelled, done = [await scene.start(CHAIN) for _ in range(4)]
    await scene.control.pause(DEFAULT_SCOPE, paused)
    await scene.cancel(cancelled)
    for work in await scene.claim():
        if work.execution_id == done:
            await scene.finish(work)
    for work in await scene.claim():
        if work.execution_id == done:
            await scene.finish(work)
    assert await scene.status(done) == "COMPLETED"

    assert set(await resume(scene, "worker")) == {running, paused}

    assert await scene.run_to_the_end(running) == "COMPLETED"
    assert await scene.status(paused) == "PAUSED"


async def test_hundreds_of_frames_are_handed_out_again(scene: Scene, log: ObedientLog) -> None:
    execution = await scene.start(ROWS.replace("100,", "700,"), count=700)
    taken = await scene.claim(1_000, DEAD)
    taken += await scene.claim(1_000 - len(taken), DEAD)
    assert len(taken) == 700

    await resume(scene, "dead")

    assert count(await scene.events(execution), "frame.abandoned") == 700
    assert max(map(len, log.appends)) <= APPEND_EVENTS_MAX
    hands = worker(slots=1_000)
    assert await scene.run_to_the_end(execution, hands) == "COMPLETED"


async def test_one_that_cannot_be_read_does_not_hold_up_the_others(scene: Scene) -> None:
    other = Scene(scene.log)
    other.new_id = scene.new_id
    other.rebuild()
    unreadable = await other.start(ROWS)  # its text lies in a store that we do not have
    execution = await scene.start(CHAIN)

    assert set(await resume(scene)) == {unreadable, execution}

    assert await scene.run_to_the_end(execution) == "COMPLETED"


async def test_executions_of_every_scope_go_on(scene: Scene) -> None:
    """Whoever holds the log is the only one who can write to it."""
    execution = await scene.start(CHAIN)
    await scene.claim(1, DEAD)

    assert await resume(scene, "dead", scope=Scope("acme", "ops")) == [execution]

    assert await scene.run_to_the_end(execution) == "COMPLETED"


class _Gate(ObedientLog):
    """Reads of streams wait until enough of them wait together."""

    together = 0
    waiting = 0

    def __init__(self) -> None:
        super().__init__()
        self.opened = asyncio.Event()

    async def head(self, execution: ExecutionId) -> StreamHead:
        self.waiting += 1
        if self.waiting >= self.together:
            self.opened.set()
        await self.opened.wait()
        return await super().head(execution)


async def test_many_executions_are_read_side_by_side() -> None:
    log = _Gate()
    scene = Scene(log)
    for _ in range(AT_ONCE_MAX + 2):
        await scene.start(CHAIN)
    log.opened.clear()
    log.together, log.waiting = AT_ONCE_MAX, 0

    async with asyncio.timeout(5):
        assert len(await resume(scene)) == AT_ONCE_MAX + 2


async def with_a_child(scene: Scene) -> tuple[ExecutionId, ExecutionId]:
    parent = await scene.start(CHAIN)
    return parent, await scene.desk.start_child(child_of(await scene.claim_one(), "desk/chain"))


async def cancel_alone(scene: Scene, parent: ExecutionId, *, cascade: bool) -> None:
    """As if whoever cancelled the tree had died after its root."""
    scene.coordinator.running.clear()
    before, after = scene.coordinator.submit, asyncio.CancelledError()

    async def once(execution: ExecutionId, wish: Wish[Any]) -> Any:
        if execution != parent:
            raise after
        return await before(execution, wish)

    scene.coordinator.submit = once  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        await scene.control.cancel(DEFAULT_SCOPE, parent, reason="enough", cascade=cascade)


async def test_children_of_a_cancelled_tree_are_cancelled(scene: Scene) -> None:
    parent, child = await with_a_child(scene)
    await cancel_alone(scene, parent, cascade=True)
    scene.rebuild()
    assert await scene.status(child) == "RUNNING"

    await resume(scene)

    assert await scene.status(child) == "CANCELLED"
    (cancelled,) = await scene.of(child, "execution.cancelled")
    assert cancelled.reason == "enough"


async def test_children_that_were_to_go_on_go_on(scene: Scene) -> None:
    parent, child = await with_a_child(scene)
    await cancel_alone(scene, parent, cascade=False)

    await resume(scene)

    assert await scene.status(child) == "RUNNING"


async def test_children_that_nobody_waits_for_any_more_go_on(scene: Scene) -> None:
    parent = await scene.start(CHAIN)
    work = await scene.claim_one()
    child = await scene.desk.start_child(child_of(work, "desk/chain"))
    await scene.finish(work)
    await cancel_alone(scene, parent, cascade=True)

    await resume(scene)

    assert await scene.status(child) == "RUNNING"


async def test_only_what_was_asked_for_is_taken_up_and_what_is_below_it(scene: Scene) -> None:
    await scene.register(CHAIN)
    other, parent = await scene.start(CHAIN), await scene.start(CHAIN)
    works = {work.execution_id: work for work in await scene.claim(2, DEAD)}
    child = await scene.desk.start_child(child_of(works[parent], "desk/chain"))
    await scene.claim(1, DEAD)
    scene.rebuild()
    projections = MemoryProjectionStore()
    projector, dead = Projector(scene.log, projections), frozenset({WorkerId("dead")})
    recovery = Recovery(scene.coordinator, projector, projections, dead=dead)
    told: list[ExecutionId] = []

    async def hear(found: Sequence[ExecutionId]) -> None:
        told.extend(found)

    recovery.listeners.append(hear)
    assert set(await recovery.take_up(DEFAULT_SCOPE, parent)) == {parent, child} == set(told)
    again = await scene.claim()

    assert {work.execution_id for work in again} == {parent, child}
    assert other not in scene.coordinator.running


async def test_a_child_that_is_taken_up_alone_does_not_bring_its_parent(scene: Scene) -> None:
    await scene.register(CHAIN)
    parent = await scene.start(CHAIN)
    (work,) = await scene.claim(1, DEAD)
    child = await scene.desk.start_child(child_of(work, "desk/chain"))
    scene.rebuild()
    projections = MemoryProjectionStore()
    recovery = Recovery(scene.coordinator, Projector(scene.log, projections), projections)

    assert await recovery.take_up(DEFAULT_SCOPE, child) == [child]
    assert parent not in scene.coordinator.running


async def test_an_execution_goes_on_by_the_version_that_it_started_with(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    newer = CHAIN.replace("{step: second}", "{step: third}").replace("step: second", "step: third")
    await scene.register(newer)
    await resume(scene, "dead")

    for step in ("first", "second"):
        work = await scene.claim_one()
        assert work.step == step
        await scene.report(ended(work, WORKER))
    assert execution not in scene.coordinator.running
