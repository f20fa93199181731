"""An execution read from a frozen state and the tail is the one that its whole log gives."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.decider.view import facts_of
from noetl.domain.execution.fold import fold
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import StoredEvent
from noetl.domain.snapshots import Snapshot
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.runtime.loading import QUIET, Loader
from noetl.runtime.projector import Projector
from noetl.runtime.running import Running
from noetl.testing.desk_words import ROWS
from tests.unit.runtime.desk_scene import Scene
from tests.unit.runtime.worker_clock import VirtualClock

BRANCHES = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: branches, path: desk/branches}
workflow:
  - {step: start, tool: {kind: noop}, next: before}
  - {step: before, tool: {kind: noop}, next: fork}
  - step: fork
    set: {ctx.seen: [fork]}
    next: {spec: {mode: inclusive}, arcs: [{step: slow}, {step: one}]}
  - {step: slow, tool: {kind: noop}}
  - {step: one, tool: {kind: noop}, set: {ctx.seen: [one]}, next: two}
  - {step: two, tool: {kind: noop}, set: {ctx.seen: [two]}, next: three}
  - {step: three, tool: {kind: noop}}
"""

Story = Callable[[Scene], Awaitable[ExecutionId]]


class CountingLog(MemoryEventLog):
    """Knows how many events were read of streams."""

    def __init__(self) -> None:
        super().__init__(VirtualClock().now)
        self.events_read = 0

    async def read(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = PAGE_EVENTS_MAX
    ) -> list[StoredEvent]:
        page = await super().read(execution, after_version=after_version, limit=limit)
        self.events_read += len(page)
        return page


async def frozen_every(scene: Scene, interval: int, page: int = 1) -> MemorySnapshotStore:
    snapshots = MemorySnapshotStore()
    projector = Projector(scene.log, MemoryProjectionStore(), snapshots, interval_events=interval)
    while await projector.advance(page):
        pass
    return snapshots


async def read(
    scene: Scene, execution: ExecutionId, snapshots: MemorySnapshotStore | None = None
) -> Running:
    loader = Loader(scene.log, scene.playbooks, "noetl://coordinator", snapshots)
    return await loader.read(execution)


def told(running: Running) -> Sequence[object]:
    """Everything that a turn reads of an execution in memory."""
    return (
        msgspec.to_builtins(running.state),
        running.head,
        running.recorded_version,
        msgspec.to_builtins(running.facts),
        {frame: running.holders.of(frame) for frame in running.state.frames},
        running.source,
    )


async def branched(scene: Scene) -> ExecutionId:
    """One branch goes on for two steps while the command of the other is held."""
    execution = await scene.start(BRANCHES)
    for _ in range(4):
        for work in await scene.claim():
            if work.step != "slow":
                await scene.finish(work, work.step)
    return execution


async def half_of_the_rows(scene: Scene) -> ExecutionId:
    execution = await scene.start(ROWS, count=6)
    works = await scene.claim(4)
    for work in works[:2]:
        await scene.finish(work, 1)
    return execution


@pytest.mark.parametrize("interval", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("story", [branched, half_of_the_rows])
async def test_a_frozen_state_and_its_tail_are_the_whole_log(interval: int, story: Story) -> None:
    scene = Scene()
    execution = await story(scene)
    snapshots = await frozen_every(scene, interval)
    (newest,) = await snapshots.candidates(DEFAULT_SCOPE, execution, at_or_before=10_000, limit=1)
    assert newest.stream_version > 0

    assert told(await read(scene, execution, snapshots)) == told(await read(scene, execution))


async def test_open_work_sees_the_execution_as_it_was_when_it_was_issued() -> None:
    """And not as it was when its state was frozen."""
    scene = Scene()
    execution = await branched(scene)
    running = await read(scene, execution, await frozen_every(scene, 1))

    (slow,) = [row for row in running.state.commands.values() if row.step == "slow"]

    assert running.facts[slow.command_id].ctx == {"seen": ["fork"]}
    assert running.state.ctx == {"seen": ["two"]}


async def test_what_work_sees_is_not_changed_by_events_that_are_called_quiet() -> None:
    scene = Scene()
    for execution in (await branched(scene), await half_of_the_rows(scene)):
        state = ExecutionState()
        for recorded in await scene.events(execution):
            seen = facts_of(state)
            fold([recorded], state)
            if isinstance(recorded.event, QUIET):
                assert facts_of(state) == seen


async def test_work_issued_just_before_its_state_was_frozen_costs_nothing() -> None:
    log = CountingLog()
    scene = Scene(log)
    execution = await scene.start(BRANCHES)
    for _ in range(2):
        for work in await scene.claim():
            await scene.finish(work)
    await scene.claim()
    events = len(await scene.events(execution))
    snapshots = await frozen_every(scene, events)
    log.events_read = 0

    running = await read(scene, execution, snapshots)

    assert len(running.facts) == 2
    assert log.events_read < 2 * events


async def test_only_the_tail_is_read() -> None:
    log = CountingLog()
    scene = Scene(log)
    execution = await scene.start(ROWS, count=100)
    for work in await scene.claim(90):
        await scene.finish(work, 1)
    snapshots = await frozen_every(scene, 50)
    log.events_read = 0
    await read(scene, execution)
    whole, log.events_read = log.events_read, 0

    await read(scene, execution, snapshots)

    assert log.events_read < whole / 2


async def broken(snapshots: MemorySnapshotStore, execution: ExecutionId, **fields: object) -> None:
    found = await snapshots.candidates(DEFAULT_SCOPE, execution, at_or_before=10_000, limit=16)
    empty = msgspec.json.encode({})
    for snapshot in found:
        damaged: Snapshot = msgspec.structs.replace(snapshot, state=empty, **fields)
        await snapshots.save(damaged)


@pytest.mark.parametrize(
    "fields",
    [
        {"fold_version": 1},
        {"registry_digest": "00" * 32},
        {"playbook_digest": "00" * 32},
        {"checksum": "00" * 32},
    ],
)
async def test_a_state_that_another_build_froze_is_not_used(fields: dict[str, object]) -> None:
    scene = Scene()
    execution = await branched(scene)
    snapshots = await frozen_every(scene, 4)
    await broken(snapshots, execution, **fields)

    assert told(await read(scene, execution, snapshots)) == told(await read(scene, execution))


async def test_a_coordinator_goes_on_from_a_frozen_state() -> None:
    scene = Scene()
    execution = await branched(scene)
    scene.snapshots = await frozen_every(scene, 3)
    scene.rebuild()

    await scene.coordinator.load(execution)
    await scene.pass_time(100)  # whoever held the commands does not come back

    assert await scene.run_to_the_end(execution) == "COMPLETED"
