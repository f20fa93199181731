"""A worker tells of chunks: small ones inside, large ones by name, each of them once."""

import asyncio
from typing import Any

import pytest

from noetl.domain.work import LeaseAnswer
from noetl.dsl.check import check
from noetl.kernel.errors import ClaimLost, LogUnavailable
from noetl.kernel.ids import StepName
from noetl.pipeline.chunks import MadeChunk
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.worker_chunks import INLINE_BYTES_MAX, ChunkTeller, answers_to_chunks
from noetl.templates.recorded import value_of
from tests.unit.runtime.worker_scene import SCOPE, Behaving, Scene, command

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pages, path: tests/pages}
workflow:
  - step: load
    tool: {kind: noop}
    next: {arcs: [{step: store, on: call.partial}, {step: store, on: call.done}]}
  - {step: store, tool: {kind: noop}, next: {arcs: [{step: end, on: call.done}]}}
"""


class Free:
    """A hold that is never lost."""

    def check(self) -> None:
        pass

    async def park(self) -> None:
        pass

    async def unpark(self) -> None:
        pass


async def _nothing(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
    return RowResult(status="ok")


@pytest.fixture
def scene() -> Scene:
    return Scene(Behaving(_nothing))


def steps() -> Any:
    playbook = check(TEXT).playbook
    assert playbook is not None
    return playbook.steps


def teller(scene: Scene) -> ChunkTeller:
    return ChunkTeller(command(), steps()["load"], scene.desk, scene.results)


async def say(scene: Scene, told: ChunkTeller, index: int, value: Any, run: int = 1) -> None:
    made = MadeChunk("load", run, index, True, value)
    await told.pass_on(made, Free(), scene.clock)


def test_only_arcs_for_chunks_make_a_step_pass_them_on() -> None:
    found = steps()
    assert answers_to_chunks(found[StepName("load")])
    assert not answers_to_chunks(found[StepName("store")])


async def test_a_small_chunk_is_inside_and_a_large_one_has_a_name(scene: Scene) -> None:
    told = teller(scene)
    await say(scene, told, 0, [{"n": 1}])
    await say(scene, told, 1, "x" * 200_000)

    small, large = scene.desk.chunks
    assert (small.index, small.has_more, small.result.reference) == (0, True, None)
    assert value_of(small.result) == [{"n": 1}]
    reference = large.result.reference
    assert reference is not None
    assert "/load%3Aload/0/2/" in reference.uri
    content = await scene.results.content(SCOPE, reference.uri, reference)
    assert content == {"value": "x" * 200_000}


async def test_after_a_megabyte_inside_events_chunks_go_by_name(scene: Scene) -> None:
    told, size = teller(scene), 90_000
    count = INLINE_BYTES_MAX // size + 3
    for index in range(count):
        await say(scene, told, index, "x" * size)

    inside = [chunk for chunk in scene.desk.chunks if chunk.result.reference is None]

    assert len(scene.desk.chunks) == count
    assert len(inside) == INLINE_BYTES_MAX // size + 1


async def test_a_task_that_is_tried_again_tells_only_of_what_is_new(scene: Scene) -> None:
    told = teller(scene)
    for index in (0, 1, 0, 1, 2):
        await say(scene, told, index, index)
    await say(scene, told, 0, 0, run=2)

    assert [(chunk.run, chunk.index) for chunk in scene.desk.chunks] == [
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 0),
    ]


async def test_a_desk_that_is_away_is_asked_again(scene: Scene) -> None:
    scene.desk.trouble = {"record_chunk": [LogUnavailable("the log is away")]}
    saying = asyncio.create_task(say(scene, teller(scene), 0, 1))
    await scene.clock.advance(60)
    await saying

    assert len(scene.desk.chunks) == 1


async def test_who_is_told_to_stop_makes_no_more(scene: Scene) -> None:
    scene.desk.answer = LeaseAnswer(next_action="stop")

    with pytest.raises(ClaimLost):
        await say(scene, teller(scene), 0, 1)
