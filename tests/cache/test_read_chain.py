"""The way to a result: strictly from layer to layer, one fetch for many askers, checked once."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.kernel.errors import PayloadCorrupt, PayloadMissing, StoreUnavailable
from noetl.ports.result_cache import CacheKey, ResultCache
from noetl.results import read_chain
from noetl.results.mapping import place_file
from noetl.results.read_chain import ReadChain
from noetl.testing.byte_streams import sample
from noetl.testing.compliance.result_cache import LEASE_END, key_of, offered
from tests.cache.chain_scene import Layers, Shelf, files_in, into_a_file

NAME = "results/one.feather"
SIZES = (0, 10, 1024 * 1024, 9 * 1024 * 1024 + 7)


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def chain_over(layers: list[ResultCache], shelf: Shelf, scratch: Path) -> ReadChain:
    return ReadChain(layers, shelf, scratch)


@pytest.mark.parametrize("size", SIZES)
async def test_what_was_fetched_once_is_found_in_every_layer(
    layers: Layers, scratch: Path, size: int
) -> None:
    data = sample(size)
    shelf = Shelf(data)
    chain = chain_over(layers.all(), shelf, scratch)

    first = await chain.read(key_of(data), NAME)

    assert (bytes(first.view), first.layer) == (data, "object_store")
    assert files_in(scratch) == []
    for position, name in enumerate(("memory", "shared_memory", "disk")):
        found = await chain_over(layers.all()[position:], shelf, scratch).read(key_of(data), NAME)
        assert (bytes(found.view), found.layer) == (data, name)
    assert shelf.reads == 1
    assert chain.stats().fetched_bytes == size


@pytest.mark.parametrize("size", SIZES)
async def test_a_program_gets_the_file_that_the_disk_has_just_kept(
    layers: Layers, scratch: Path, size: int
) -> None:
    data = sample(size)
    chain = chain_over(layers.all(), Shelf(data), scratch)

    fetched = await chain.read(key_of(data), NAME)
    again = await chain.read(key_of(data), NAME)

    assert (fetched.layer, again.layer) == ("object_store", "memory")
    assert fetched.path is not None
    assert fetched.path.read_bytes() == data
    assert again.path == fetched.path
    assert (await chain_over([], Shelf(data), scratch).read(key_of(data), NAME)).path is None


async def test_layers_are_asked_in_order_and_only_until_one_has_it(
    layers: Layers, scratch: Path
) -> None:
    data = sample(100)
    for layer in layers.all():
        layer.offer(key_of(data), offered(data))
    chain = chain_over(layers.all(), Shelf(None), scratch)

    await chain.read(key_of(data), NAME)

    assert layers.hits() == [1, 0, 0]
    assert [layer.stats().reads for layer in layers.all()] == [1, 0, 0]


async def test_what_the_disk_has_fills_the_layers_above(layers: Layers, scratch: Path) -> None:
    data = sample(100)
    layers.disk.offer(key_of(data), offered(data))
    chain = chain_over(layers.all(), Shelf(None), scratch)

    assert (await chain.read(key_of(data), NAME)).layer == "disk"
    await chain.close()

    assert layers.shared.get(key_of(data)) is not None
    assert layers.memory.get(key_of(data)) is not None


async def test_shared_memory_is_not_kept_beyond_its_lease(layers: Layers, scratch: Path) -> None:
    data = sample(100)
    layers.shared.offer(key_of(data), offered(data, LEASE_END))
    chain = chain_over(layers.all(), Shelf(None), scratch)

    assert (await chain.read(key_of(data), NAME)).layer == "shared_memory"

    assert layers.memory.get(key_of(data)) is None


async def test_a_region_of_another_node_costs_nothing(layers: Layers, scratch: Path) -> None:
    data = sample(100)
    layers.shared.offer(key_of(data), offered(data, LEASE_END))
    folder = scratch.parent / "shm"
    options = SharedMemoryOptions(home_id="home", node_id="other", folder=folder)
    elsewhere = SharedMemoryResultCache(options, utc_now)
    chain = chain_over([elsewhere], Shelf(data), scratch)

    found = await chain.read(key_of(data), NAME)

    assert (bytes(found.view), found.layer) == (data, "object_store")
    assert elsewhere.stats().misses == {"foreign_node": 1}


async def test_many_askers_cause_one_fetch(layers: Layers, scratch: Path) -> None:
    data = sample(3_000_000)
    shelf = Shelf(data)
    chain = chain_over(layers.all(), shelf, scratch)

    found = await asyncio.gather(*(chain.read(key_of(data), NAME) for _ in range(20)))

    assert {bytes(each.view) for each in found} == {data}
    assert shelf.reads == 1
    assert (chain.stats().joined, chain.stats().fallbacks) == (19, 1)


async def test_an_asker_that_leaves_does_not_take_the_fetch_along(scratch: Path) -> None:
    data = sample(100)
    shelf = Shelf(data)
    shelf.may_go_on.clear()
    chain = chain_over([], shelf, scratch)
    leaving = asyncio.create_task(chain.read(key_of(data), NAME))
    staying = asyncio.create_task(chain.read(key_of(data), NAME))
    await shelf.asked.wait()

    leaving.cancel()
    await asyncio.wait([leaving])
    shelf.may_go_on.set()

    assert bytes((await staying).view) == data
    assert leaving.cancelled()
    assert shelf.reads == 1


async def test_a_fetch_ends_when_nobody_waits_for_it(scratch: Path) -> None:
    data = sample(3_000_000)
    shelf = Shelf(data)
    shelf.may_go_on.clear()
    chain = chain_over([], shelf, scratch)
    leaving = asyncio.create_task(chain.read(key_of(data), NAME))
    await shelf.asked.wait()

    leaving.cancel()
    await shelf.given_up.wait()
    shelf.may_go_on.set()

    assert bytes((await chain.read(key_of(data), NAME)).view) == data
    assert shelf.reads == 2
    await chain.close()
    assert files_in(scratch) == []


@pytest.mark.parametrize("size", [10, 3_000_000])
@pytest.mark.parametrize("kind", ["flipped", "shortened", "lengthened", "emptied"])
async def test_wrong_bytes_never_come_in(
    layers: Layers, scratch: Path, size: int, kind: str
) -> None:
    data = sample(size)
    wrong = {
        "flipped": data[:-1] + bytes([data[-1] ^ 1]),
        "shortened": data[:-1],
        "lengthened": data + b"x",
        "emptied": b"",
    }[kind]
    chain = chain_over(layers.all(), Shelf(wrong), scratch)

    with pytest.raises(PayloadCorrupt, match=NAME):
        await chain.read(key_of(data), NAME)

    assert [layer.stats().entries for layer in layers.all()] == [0, 0, 0]
    assert files_in(scratch) == []


async def test_what_the_store_says_comes_out_and_the_next_asks_again(
    layers: Layers, scratch: Path
) -> None:
    data = sample(10)
    shelf = Shelf(None)
    chain = chain_over(layers.all(), shelf, scratch)
    with pytest.raises(PayloadMissing):
        await chain.read(key_of(data), NAME)

    shelf.data = data

    assert bytes((await chain.read(key_of(data), NAME)).view) == data


@pytest.mark.parametrize("broken", ["shm", "disk", "scratch"])
async def test_a_broken_layer_costs_time_only(
    layers: Layers, tmp_path: Path, scratch: Path, broken: str
) -> None:
    data = sample(3_000_000)
    into_a_file(tmp_path / broken)
    shelf = Shelf(data)

    for _ in range(2):
        chain = chain_over(layers.all()[1:], shelf, scratch)
        assert bytes((await chain.read(key_of(data), NAME)).view) == data

    assert shelf.reads <= 2 + (broken == "scratch")


async def test_a_disk_without_room_for_a_large_object_is_told(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_chain, "MEMORY_BYTES_MAX", 2_000_000)
    into_a_file(scratch)
    data = sample(3_000_000)

    with pytest.raises(StoreUnavailable, match="give the folder space"):
        await chain_over([], Shelf(data), scratch).read(key_of(data), NAME)


class TestLocalStore:
    async def test_a_local_object_is_mapped_where_it_lies(
        self, layers: Layers, tmp_path: Path, scratch: Path
    ) -> None:
        data = sample(3_000_000)
        path = tmp_path / "object"
        path.write_bytes(data)
        shelf = Shelf(data, path)
        chain = chain_over(layers.all(), shelf, scratch)

        found = await chain.read(key_of(data), NAME)

        assert (bytes(found.view), found.layer, found.path) == (data, "local_store", path)
        assert shelf.reads == 0
        assert [layer.stats().entries for layer in layers.all()] == [1, 0, 0]
        assert files_in(scratch) == []

    async def test_a_local_object_is_checked_when_it_is_new_or_changed(
        self, tmp_path: Path, scratch: Path
    ) -> None:
        data = sample(100)
        path = tmp_path / "object"
        path.write_bytes(data)
        chain = chain_over([], Shelf(data, path), scratch)
        await chain.read(key_of(data), NAME)

        path.unlink()
        path.write_bytes(bytes(100))

        with pytest.raises(PayloadCorrupt):
            await chain.read(key_of(data), NAME)

    async def test_a_local_object_that_is_gone_is_the_stores_to_explain(
        self, tmp_path: Path, scratch: Path
    ) -> None:
        with pytest.raises(PayloadMissing):
            await chain_over([], Shelf(None, tmp_path / "gone"), scratch).read(key_of(b"x"), NAME)


async def test_two_executions_with_equal_bytes_fetch_each_for_itself(
    layers: Layers, scratch: Path
) -> None:
    data = sample(100)
    shelf = Shelf(data)
    chain = chain_over(layers.all(), shelf, scratch)

    for execution in ("1", "2"):
        key = CacheKey(
            tenant_id="acme",
            organization_id="research",
            execution_id=execution,
            sha256=hashlib.sha256(data).hexdigest(),
            byte_length=100,
        )
        await chain.read(key, NAME)

    assert shelf.reads == 2


def test_a_file_is_another_name_or_else_a_copy(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"data")

    place_file(memoryview(b"data"), tmp_path / "source", tmp_path / "linked")
    place_file(memoryview(b"data"), tmp_path / "gone", tmp_path / "copied")
    place_file(memoryview(b"data"), None, tmp_path / "written")

    assert (tmp_path / "linked").stat().st_ino == (tmp_path / "source").stat().st_ino
    assert (tmp_path / "copied").read_bytes() == (tmp_path / "written").read_bytes() == b"data"
