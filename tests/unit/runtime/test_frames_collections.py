"""Rows of a collection in the payload store are fetched once, and checked."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from noetl.domain.events.values import ResultReference
from noetl.domain.payload import PayloadReference
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.pipeline.payloads import as_reference
from noetl.runtime.frames_rows import COLLECTIONS_KEPT_MAX, Collections
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.unit.runtime.frame_scene import doubled
from tests.unit.runtime.worker_clock import VirtualClock, settle
from tests.unit.runtime.worker_scene import LOOP, SCOPE, Behaving, Scene, frame, only_frame


class CountingStore(MemoryPayloadStore):
    def __init__(self) -> None:
        super().__init__()
        self.gets = 0
        self.trouble: list[Exception] = []

    async def get(self, reference: PayloadReference) -> AsyncIterator[bytes]:
        self.gets += 1
        await asyncio.sleep(0)
        if self.trouble:
            raise self.trouble.pop(0)
        async for chunk in super().get(reference):
            yield chunk


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


def check() -> None:
    """The lease holds."""


async def put(store: MemoryPayloadStore, value: Any, scope: Scope = SCOPE) -> ResultReference:
    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return as_reference(await store.put(scope, encoded, "application/json"))


def part(collection: ResultReference, first: int = 0, rows: int = 2) -> Any:
    return frame(None, collection=collection, first_index=first, row_count=rows)


async def test_a_frame_takes_its_rows_out_of_the_collection() -> None:
    scene = Scene(Behaving(doubled), steps=LOOP)
    collection = await put(scene.payloads, list(range(100)))
    async with scene.running():
        await scene.do(part(collection, first=40, rows=3))

    assert [each.value for each in only_frame(scene.desk).outcomes] == [80, 82, 84]


async def test_a_collection_is_fetched_once_for_all_its_frames(store: CountingStore) -> None:
    collection = await put(store, list(range(10)))
    collections = Collections(memory_results(store), VirtualClock())

    frames = [part(collection, first) for first in range(0, 10, 2)]
    rows = await asyncio.gather(*(collections.rows(work, check) for work in frames))
    rows.append(await collections.rows(frames[0], check))

    assert [row for each in rows[:5] for row in each] == list(range(10))
    assert store.gets == 1


async def test_only_the_last_collections_are_kept(store: CountingStore) -> None:
    kept = [await put(store, [number, 0]) for number in range(COLLECTIONS_KEPT_MAX + 1)]
    collections = Collections(memory_results(store), VirtualClock())
    for collection in [*kept, kept[-1], kept[-2], kept[0]]:
        await collections.rows(part(collection), check)

    assert store.gets == len(kept) + 1


async def test_a_frame_that_is_cancelled_cancels_no_fetch_of_others(store: CountingStore) -> None:
    collection = await put(store, [1, 2])
    collections = Collections(memory_results(store), VirtualClock())
    first, second = (
        asyncio.create_task(collections.rows(part(collection), check)) for _ in range(2)
    )
    await asyncio.sleep(0)
    first.cancel()

    assert await second == [1, 2]
    assert store.gets == 1


async def test_a_store_that_is_away_is_asked_again(store: CountingStore) -> None:
    collection = await put(store, [1, 2])
    store.trouble = [StoreUnavailable("come back later"), StoreUnavailable("not yet")]
    clock = VirtualClock()

    fetching = asyncio.create_task(
        Collections(memory_results(store), clock).rows(part(collection), check)
    )
    await clock.advance(1)

    assert await fetching == [1, 2]


@pytest.mark.parametrize(
    ("content", "rows", "words"),
    [
        ({"not": "a list"}, 2, "is neither a list nor a table"),
        (b"not even JSON", 2, "is neither a list nor a table"),
        ([1], 2, "has 1 of the 2 rows from 0 on"),
    ],
)
async def test_a_collection_that_does_not_fit_fails_the_frame(
    content: Any, rows: int, words: str
) -> None:
    scene = Scene(Behaving(doubled), steps=LOOP)
    collection = await put(scene.payloads, content)
    async with scene.running():
        await scene.do(part(collection, rows=rows))

    error = only_frame(scene.desk).error
    assert error is not None
    assert (error.kind, error.retryable) == ("missing_reference", True)
    assert words in error.message


async def test_a_collection_that_is_gone_fails_the_frame() -> None:
    scene = Scene(Behaving(doubled), steps=LOOP)
    collection = await put(MemoryPayloadStore(), [1, 2])
    async with scene.running():
        await scene.do(part(collection))

    error = only_frame(scene.desk).error
    assert error is not None
    assert (error.kind, error.code) == ("missing_reference", "payload_missing")


async def test_another_tenants_collection_is_not_there() -> None:
    scene = Scene(Behaving(doubled), steps=LOOP)
    collection = await put(scene.payloads, [1, 2], Scope("others", "ops"))
    await put(scene.payloads, [1, 2])  # the same bytes are here, under a name of ours
    async with scene.running():
        await scene.do(part(collection))

    error = only_frame(scene.desk).error
    assert error is not None
    assert error.code == "payload_missing"


async def test_rows_that_came_along_must_be_as_many_as_were_said() -> None:
    scene = Scene(Behaving(doubled), steps=LOOP)
    async with scene.running():
        await scene.do(frame([1, 2], row_count=3))
        await settle()

    error = only_frame(scene.desk).error
    assert error is not None
    assert "has 2 of the 3 rows" in error.message
