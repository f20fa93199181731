"""What people ask of executions, whatever they are in the middle of."""

import pytest

from noetl.domain.events import BusinessObjectChanged
from noetl.domain.log import APPEND_EVENTS_MAX
from noetl.kernel.errors import ClaimLost, ExecutionNotFound, LogUnavailable, StateRefuses
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.testing.desk_words import (
    CHAIN,
    ROWS,
    child_of,
    count,
    ended,
    said_to,
    types,
    worker,
)
from tests.unit.runtime.desk_scene import WORKER, Scene
from tests.unit.runtime.obedient_log import ObedientLog

STRANGERS = Scope("acme", "ops")
BOTH = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: both, path: control/both}
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: other}]}
  - step: each
    loop:
      in: "{{ range(4) | list }}"
      iterator: item
      spec: {mode: parallel, max_in_flight: 4, frame: {max_rows: 1, row_concurrency: 1}}
    tool: {kind: noop}
  - step: other
    tool: {kind: noop}
"""

RESCUED = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: rescued, path: control/rescued}
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: small}, {step: large}]}
  - step: small
    loop:
      in: [1, 2]
      iterator: item
      spec: {mode: parallel, max_in_flight: 2, frame: {max_rows: 1, row_concurrency: 1}}
    tool: {kind: noop}
    next: {arcs: [{step: rescue, when: "{{ event.name == 'call.error' }}"}]}
  - step: large
    loop:
      in: "{{ range(600) | list }}"
      iterator: item
      spec: {mode: parallel, max_in_flight: 600, frame: {max_rows: 1, row_concurrency: 1}}
    tool: {kind: noop}
  - step: rescue
    tool: {kind: noop}
"""


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


async def test_a_cancel_ends_everything_that_is_open_in_one_append(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(BOTH)
    works = await scene.claim(4)
    log.appends.clear()

    assert await scene.control.cancel(DEFAULT_SCOPE, execution, reason="enough") == [execution]

    assert log.appends == [
        [
            *["frame.failed"] * 3,
            "loop.done",
            "stage.closed",
            "command.cancelled",
            "execution.cancelled",
        ]
    ]
    assert {each.error.kind for each in await scene.of(execution, "frame.failed")} == {"cancelled"}
    (done,) = await scene.of(execution, "loop.done")
    assert (done.status, done.stats.skipped) == ("cancelled", 4)
    for work in works:
        assert await said_to(scene.report(ended(work, WORKER))) == "lost"
    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert (ending.status, ending.error and ending.error.message) == ("CANCELLED", "enough")


async def test_more_open_work_than_fits_into_one_append_is_cancelled_too(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(ROWS.replace("100,", "900,"), count=900)
    hands = worker(slots=1_000)
    works = await scene.claim(1_000, hands)
    works += await scene.claim(1_000 - len(works), hands)
    works += await scene.claim(1_000 - len(works), hands)
    assert len(works) == 900

    await scene.cancel(execution)

    assert max(map(len, log.appends)) <= APPEND_EVENTS_MAX
    assert await scene.status(execution) == "CANCELLED"
    events = await scene.events(execution)
    assert count(events, "frame.failed") == 900
    assert count(events, "loop.done") == count(events, "stage.closed") == 1
    assert count(events, "execution.cancelled") == 1
    assert not (await scene.coordinator.load(execution)).state.frames


async def test_nothing_follows_from_a_cancel_that_takes_several_appends(scene: Scene) -> None:
    execution = await scene.start(RESCUED)
    hands = worker(slots=1_000)
    works = await scene.claim(1_000, hands)
    works += await scene.claim(1_000 - len(works), hands)
    works += await scene.claim(1_000 - len(works), hands)
    assert len(works) == 602

    await scene.cancel(execution)

    events = await scene.events(execution)
    assert count(events, "command.issued") == 0
    assert {done.status for done in await scene.of(execution, "loop.done")} == {"cancelled"}


async def test_a_cancel_reaches_the_children_and_theirs(scene: Scene) -> None:
    parent = await scene.start(CHAIN)
    first = await scene.claim_one()
    child = await scene.desk.start_child(child_of(first, "desk/chain"))
    second = await scene.claim_one()
    grandchild = await scene.desk.start_child(child_of(second, "desk/chain"))

    assert await scene.control.cancel(DEFAULT_SCOPE, parent) == [parent, child, grandchild]

    for execution in (parent, child, grandchild):
        assert await scene.status(execution) == "CANCELLED"
    with pytest.raises(ClaimLost):
        await scene.report(ended(second, WORKER))


async def test_without_cascade_children_go_on(scene: Scene) -> None:
    parent = await scene.start(CHAIN)
    child = await scene.desk.start_child(child_of(await scene.claim_one(), "desk/chain"))

    await scene.control.cancel(DEFAULT_SCOPE, parent, cascade=False)

    assert await scene.run_to_the_end(child) == "COMPLETED"


async def test_what_is_over_cannot_be_cancelled(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    await scene.run_to_the_end(execution)

    with pytest.raises(StateRefuses, match="is completed and cannot be cancelled"):
        await scene.cancel(execution)


async def test_strangers_find_nothing(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    control = scene.control

    for asked in (
        control.cancel(STRANGERS, execution),
        control.pause(STRANGERS, execution),
        control.resume(STRANGERS, execution),
        control.retry(STRANGERS, execution),
        control.emit(STRANGERS, execution, BusinessObjectChanged(object="order", id="1")),
    ):
        with pytest.raises(ExecutionNotFound):
            await asked
    assert await scene.status(execution) == "RUNNING"


async def test_a_pause_holds_what_follows_and_a_resume_lets_it_go(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    for _ in range(2):
        await scene.control.pause(DEFAULT_SCOPE, execution)

    await scene.finish(work)

    assert types(await scene.events(execution))[-1] == "command.completed"
    assert await scene.claim() == []
    scene.rebuild()
    for _ in range(2):
        await scene.control.resume(DEFAULT_SCOPE, execution)
    assert await scene.run_to_the_end(execution) == "COMPLETED"
    tally = types(await scene.events(execution))
    assert tally.count("execution.paused") == tally.count("execution.resumed") == 1


async def test_a_wish_that_could_not_be_recorded_was_not_granted(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(CHAIN)
    log.failures = [LogUnavailable("away")]

    with pytest.raises(LogUnavailable):
        await scene.cancel(execution)

    assert await scene.status(execution) == "RUNNING"
    await scene.reaper.look()
    assert await scene.run_to_the_end(execution) == "COMPLETED"
