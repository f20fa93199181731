"""Frames name the one before them in their stage, stages the one whose row asked for them."""

from collections import Counter

import msgspec
import pytest

from noetl.domain.execution.fold import fold
from noetl.domain.execution.rows import FrameRow, StageRow, Surface
from noetl.domain.work import CommandWork, FrameWork
from noetl.kernel.ids import ExecutionId, FrameId, StageId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.testing.desk_words import child_of, worker
from tests.unit.runtime.desk_scene import WORKER, Scene

LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: lineage, path: tests/lineage}
workload: {count: 20}
workflow:
  - step: each
    loop:
      in: "{{ range(count) | list }}"
      spec: {mode: %s, max_in_flight: 4, frame: {max_rows: 3}}
    tool: {kind: noop}
    next: {arcs: [{step: again}]}
  - step: again
    loop: {in: [1, 2, 3], spec: {max_in_flight: 1, frame: {max_rows: 1}}}
    tool: {kind: noop}
"""
ASKS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asks, path: tests/asks}
workflow:
  - {step: ask, tool: {kind: playbook, path: tests/lineage}}
"""


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def rows_of(
    scene: Scene, execution: ExecutionId
) -> tuple[dict[StageId, StageRow], dict[FrameId, FrameRow]]:
    stages: dict[StageId, StageRow] = {}
    frames: dict[FrameId, FrameRow] = {}

    def keep(_surface: Surface, row: msgspec.Struct) -> None:
        if isinstance(row, StageRow):
            stages[row.stage_id] = row
        elif isinstance(row, FrameRow):
            frames[row.frame_id] = row

    state = fold(await scene.events(execution), sink=keep)
    return stages | state.stages, frames | state.frames


async def check_the_tree(scene: Scene, execution: ExecutionId) -> None:
    stages, frames = await rows_of(scene, execution)
    with_parent = [row for row in frames.values() if row.parent_frame_id is not None]
    roots = Counter(row.stage_id for row in frames.values() if row.parent_frame_id is None)

    assert len(with_parent) == len(frames) - len(stages)
    assert roots == dict.fromkeys(stages, 1)
    for row in with_parent:
        assert frames[row.parent_frame_id or FrameId("")].stage_id == row.stage_id
    for row in frames.values():
        assert row.claimed_event_id is not None
        assert row.terminal_event_id is not None


@pytest.mark.parametrize("mode", ["parallel", "sequential", "fanout"])
async def test_every_stage_has_one_root_frame(scene: Scene, mode: str) -> None:
    execution = await scene.start(LOOP % mode)

    assert await scene.run_to_the_end(execution) == "COMPLETED"

    await check_the_tree(scene, execution)


async def test_a_frame_that_is_handed_out_again_keeps_its_parent(scene: Scene) -> None:
    execution = await scene.start(LOOP % "parallel")
    works = await scene.claim()
    before = {row.frame_id: row.parent_frame_id for row in await open_frames(scene, execution)}
    scene.rebuild()
    await scene.coordinator.load(execution)

    await scene.pass_time(scene.lease_seconds + 1)
    assert await scene.run_to_the_end(execution, worker("other")) == "COMPLETED"

    _, frames = await rows_of(scene, execution)
    assert len(works) > 1
    assert {name: frames[name].parent_frame_id for name in before} == before
    await check_the_tree(scene, execution)


async def open_frames(scene: Scene, execution: ExecutionId) -> list[FrameRow]:
    return [*(await scene.coordinator.load(execution)).state.frames.values()]


async def test_a_person_s_retry_is_a_stage_with_a_root_of_its_own(scene: Scene) -> None:
    execution = await scene.start(LOOP % "parallel")
    await scene.claim()
    await scene.cancel(execution)

    await scene.control.retry(DEFAULT_SCOPE, execution)

    assert await scene.run_to_the_end(execution) == "COMPLETED"
    _, frames = await rows_of(scene, execution)
    roots = Counter(row.stage_id for row in frames.values() if row.parent_frame_id is None)
    assert set(roots.values()) == {1}


async def test_a_stage_of_a_child_names_the_stage_whose_row_asked_for_it(scene: Scene) -> None:
    parent = await scene.start(LOOP % "parallel")
    frame = next(work for work in await scene.claim() if isinstance(work, FrameWork))
    child = await scene.desk.start_child(child_of(frame, "tests/lineage"))

    stages, _ = await rows_of(scene, child)

    assert [row.parent_stage_id for row in stages.values()] == [frame.stage_id]
    own, _ = await rows_of(scene, parent)
    assert [row.parent_stage_id for row in own.values()] == [None]


async def test_a_stage_below_a_command_of_a_child_belongs_to_the_same_stage(scene: Scene) -> None:
    await scene.register(ASKS)
    await scene.start(LOOP % "parallel")
    frame = next(work for work in await scene.claim(2) if isinstance(work, FrameWork))
    child = await scene.desk.start_child(child_of(frame, "tests/asks"))
    command = next(work for work in await scene.claim() if isinstance(work, CommandWork))
    assert command.execution_id == child
    grandchild = await scene.desk.start_child(child_of(command, "tests/lineage"))

    stages, _ = await rows_of(scene, grandchild)

    assert [row.parent_stage_id for row in stages.values()] == [frame.stage_id]


async def test_a_stage_that_nobody_asked_for_has_no_parent(scene: Scene) -> None:
    execution = await scene.start(LOOP % "fanout")
    await scene.run_to_the_end(execution, WORKER)

    stages, _ = await rows_of(scene, execution)

    assert [row.parent_stage_id for row in stages.values()] == [None, None]
