"""Copies of objects: the nearest that has the right bytes answers, and one that failed waits."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.kernel.errors import (
    NoETLError,
    ObjectMissing,
    PayloadCorrupt,
    PayloadMissing,
    StoreUnavailable,
)
from noetl.ports.object_store import ObjectFacts
from noetl.ports.result_cache import CacheKey
from noetl.results.places import FAILED_SECONDS, Place, Places
from noetl.results.read_chain import ReadChain
from noetl.testing.compliance.result_cache import key_of
from tests.cache.chain_scene import Shelf

DATA = b"the right bytes" * 100
KEY = key_of(DATA)
NAME = "results/one.json"


class Away(Shelf):
    """A store that does not answer."""

    async def read(self, key: str) -> AsyncIterator[bytes]:
        self.reads += 1
        raise StoreUnavailable(f"{key} cannot be asked for")
        yield b""

    async def head(self, key: str) -> ObjectFacts | None:
        raise StoreUnavailable(f"{key} cannot be asked for")


class Scene:
    def __init__(self, primary: Shelf, replica: Shelf, scratch: Path) -> None:
        self.seconds = 0.0
        self.primary, self.replica = primary, replica
        self.places = Places(
            [Place("primary", primary), Place("replica", replica, is_replica=True)],
            lambda: self.seconds,
        )
        self.chain = ReadChain([], self.places, scratch)

    async def read(self, key: CacheKey = KEY) -> bytes:
        return bytes((await self.chain.read(key, NAME)).view)


@pytest.mark.parametrize(
    "primary", [Shelf(None), Shelf(b"spoilt"), Away(None)], ids=["lost", "spoilt", "away"]
)
async def test_another_copy_makes_it_good(primary: Shelf, tmp_path: Path) -> None:
    scene = Scene(primary, Shelf(DATA), tmp_path)
    assert await scene.read() == DATA
    assert (primary.reads, scene.chain.stats().found) == (1, {"replica": 1})


async def test_the_first_that_has_it_is_enough(tmp_path: Path) -> None:
    scene = Scene(Shelf(DATA), Shelf(DATA), tmp_path)
    assert await scene.read() == DATA
    assert scene.replica.reads == 0
    assert scene.chain.stats().found == {"object_store": 1}


async def test_a_place_that_failed_is_asked_last_for_a_while(tmp_path: Path) -> None:
    scene = Scene(Away(None), Shelf(DATA), tmp_path)
    await scene.read()
    assert scene.places.failed == {"primary"}

    await scene.read()
    assert scene.primary.reads == 1

    scene.seconds = FAILED_SECONDS + 1
    await scene.read()
    assert scene.primary.reads == 2
    assert scene.places.failures == {"primary": 2, "replica": 0}


async def test_a_place_that_lacks_it_has_not_failed(tmp_path: Path) -> None:
    scene = Scene(Shelf(None), Shelf(DATA), tmp_path)
    await scene.read()
    await scene.read()
    assert scene.primary.reads == 2
    assert scene.places.failed == frozenset()


@pytest.mark.parametrize(
    ("primary", "replica", "expected"),
    [
        (Shelf(None), Shelf(None), PayloadMissing),
        (Shelf(None), Away(None), StoreUnavailable),
        (Away(None), Shelf(None), StoreUnavailable),
        (Shelf(b"spoilt"), Shelf(None), PayloadCorrupt),
        (Shelf(b"spoilt"), Away(None), StoreUnavailable),
    ],
)
async def test_without_any_the_most_telling_reason_is_given(
    primary: Shelf, replica: Shelf, expected: type[NoETLError], tmp_path: Path
) -> None:
    scene = Scene(primary, replica, tmp_path)
    with pytest.raises(expected):
        await scene.read()


async def test_what_nobody_knows_the_digest_of_fails_over_too(tmp_path: Path) -> None:
    scene = Scene(Away(None), Shelf(DATA), tmp_path)
    assert hashlib.sha256(await scene.places.whole(NAME)).hexdigest() == KEY.sha256
    facts = await scene.places.head(NAME)
    assert facts is not None
    assert facts.byte_length == len(DATA)


async def test_head_says_missing_only_when_everybody_does(tmp_path: Path) -> None:
    assert await Scene(Shelf(None), Shelf(None), tmp_path).places.head(NAME) is None
    with pytest.raises(StoreUnavailable):
        await Scene(Shelf(None), Away(None), tmp_path).places.head(NAME)


def test_missing_objects_rank_below_stores_that_are_away() -> None:
    scene_free = Places([Place("a", Shelf(None))], lambda: 0.0)
    scene_free.note(scene_free.in_order()[0], ObjectMissing("x"))
    assert scene_free.failures == {"a": 0}
