"""Chunks at the desk: recorded in order and once, and seen by the step that they go to."""

from typing import Any

import pytest

from noetl.domain.chunk import Chunk, ChunkTold
from noetl.domain.work import CommandWork
from noetl.kernel.errors import ClaimLost, RequestInvalid
from noetl.templates.recorded import inline_result
from noetl.testing.desk_words import count, worker
from tests.unit.runtime.desk_scene import LEASE_SECONDS, Scene

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pages, path: tests/pages}
workflow:
  - step: pages
    tool: {kind: noop}
    next: {arcs: [{step: store, on: call.partial}, {step: last, on: call.done}]}
  - {step: store, tool: {kind: noop}}
  - {step: last, tool: {kind: noop}}
"""
OTHER = worker("other")


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def claim(scene: Scene) -> CommandWork:
    work = await scene.claim_one()
    assert isinstance(work, CommandWork)
    return work


def told(work: CommandWork, index: int, **fields: Any) -> ChunkTold:
    chunk = Chunk(
        task="pages", index=index, has_more=index < 2, result=inline_result({"page": index})
    )
    return ChunkTold(
        execution_id=work.execution_id,
        command_id=work.command_id,
        claim=fields.pop("claim", work.claim),
        chunk=chunk,
    )


def page(work: CommandWork) -> Any:
    return work.facts.results["pages"].context["value"]["page"]  # type: ignore[index]


async def test_every_chunk_is_seen_by_the_step_that_it_goes_to(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    pages = await claim(scene)
    for index in range(3):
        answer = await scene.desk.record_chunk(told(pages, index))
        assert answer.next_action == "continue"
        store = await claim(scene)
        assert (store.step, store.visit, page(store)) == ("store", index + 1, index)
        await scene.finish(store)
    await scene.finish(pages, {"pages": 3})

    last = await claim(scene)

    assert last.facts.results["pages"].context["value"] == {"pages": 3}  # type: ignore[index]
    await scene.finish(last)
    assert await scene.status(execution) == "COMPLETED"
    assert count(await scene.events(execution), "call.partial") == 3


async def test_what_waits_is_handed_out_after_a_restart(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    pages = await claim(scene)
    for index in range(3):
        await scene.desk.record_chunk(told(pages, index))
    store = await claim(scene)
    await scene.finish(pages)
    await scene.finish(store)

    scene.rebuild()
    await scene.coordinator.load(execution)
    await scene.pass_time(LEASE_SECONDS + 1)
    seen = []
    while (work := await claim(scene)).step == "store":
        seen.append(page(work))
        await scene.finish(work)

    assert seen == [1, 2]
    assert work.step == "last"


async def test_a_chunk_that_is_told_of_twice_is_recorded_once(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    pages = await claim(scene)
    for _ in range(3):
        await scene.desk.record_chunk(told(pages, 0))

    assert count(await scene.events(execution), "call.partial") == 1
    with pytest.raises(RequestInvalid, match="in order"):
        await scene.desk.record_chunk(told(pages, 2))


async def test_the_next_holder_tells_of_all_chunks_and_only_new_ones_count(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    first = await claim(scene)
    await scene.desk.record_chunk(told(first, 0))
    await scene.pass_time(LEASE_SECONDS + 1)
    works = await scene.claim(by=OTHER)
    second = next(work for work in works if work.step == "pages")
    assert isinstance(second, CommandWork)

    with pytest.raises(ClaimLost):
        await scene.desk.record_chunk(told(first, 1))
    for index in range(3):
        await scene.desk.record_chunk(told(second, index))

    assert second.claim == first.claim + 1
    events = await scene.of(execution, "call.partial")
    assert [event.chunk_index for event in events] == [0, 1, 2]
    assert [event.has_more for event in events] == [True, True, False]


async def test_the_event_says_whose_chunk_it_is(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    pages = await claim(scene)
    await scene.desk.record_chunk(told(pages, 0))

    (recorded,) = (
        each for each in await scene.events(execution) if each.envelope.event_type == "call.partial"
    )

    assert recorded.envelope.command_id == pages.command_id
    assert (recorded.event.task, recorded.event.run) == ("pages", 1)  # type: ignore[attr-defined]


async def test_chunks_of_a_cancelled_execution_are_refused(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    pages = await claim(scene)
    await scene.cancel(execution)

    with pytest.raises(ClaimLost):
        await scene.desk.record_chunk(told(pages, 0))
