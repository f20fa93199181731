"""The ObjectStore's promises as tests. An adapter passes by subclassing and giving fixtures."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from noetl.kernel import instant
from noetl.kernel.errors import ObjectDiffers
from noetl.ports.object_store import CHUNK_BYTES, IN_FLIGHT_BYTES_MAX, ObjectStore, StoredObject
from noetl.testing.bounded_memory import MIB, bounded_memory
from noetl.testing.byte_streams import broken, numbered_blocks, pieces, sample
from noetl.testing.compliance.object_store_keys import (
    KEY,
    ObjectStoreKeysCompliance,
    listed,
    stored_as,
    whole,
)

SIZES = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7, 20 * MIB + 1)
SMALL_AND_LARGE = (10, 9 * MIB)  # the second goes to a bucket in parts
RACERS = 16
REPLACEMENTS = 20


class ObjectStoreCompliance(ObjectStoreKeysCompliance):
    @pytest.fixture
    def large_bytes(self) -> int:
        """How much to stream through in the test of O4."""
        return 200 * MIB

    @pytest.mark.parametrize("size", SIZES)
    async def test_o1_what_is_created_is_what_is_read(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)

        assert await object_store.create(KEY, data) == stored_as(data)
        assert await whole(object_store) == data

    @pytest.mark.parametrize("size", SIZES)
    async def test_o1_a_stream_is_stored_like_its_bytes(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)

        assert await object_store.create(KEY, pieces(data)) == stored_as(data)
        assert await whole(object_store) == data

    @pytest.mark.parametrize("size", [10, 3 * CHUNK_BYTES + 7])
    async def test_o1_a_range_is_a_part_of_the_bytes(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)
        await object_store.create(KEY, data)

        for start in (0, 1, size - 1, size, size + 5):
            for length in (0, 1, 7, size, size + 5):
                found = await object_store.read_range(KEY, start, length)
                assert found == data[start : start + length], (start, length)

    async def test_o1_head_knows_the_length(self, object_store: ObjectStore) -> None:
        await object_store.create(KEY, sample(1_234), media_type="text/ü\n")

        facts = await object_store.head(KEY)

        assert facts is not None
        assert (facts.key, facts.byte_length) == (KEY, 1_234)
        if facts.modified is not None:
            instant.check(facts.modified)

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    async def test_o2_equal_bytes_may_be_created_again(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)

        for again in (data, data, pieces(data)):
            assert await object_store.create(KEY, again) == stored_as(data)

        assert await whole(object_store) == data

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    async def test_o2_other_bytes_are_refused(self, object_store: ObjectStore, size: int) -> None:
        data = sample(size)
        await object_store.create(KEY, data)

        for other in (data[:-1] + b"x", data[:-1], data + b"x", b"", sample(11), sample(10 * MIB)):
            for form in (other, pieces(other)):
                with pytest.raises(ObjectDiffers, match=KEY) as raised:
                    await object_store.create(KEY, form)
                assert raised.value.stored == stored_as(data).sha256
                assert raised.value.given == stored_as(other).sha256

        assert await whole(object_store) == data

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    async def test_o2_many_may_create_the_same_at_once(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)
        racers = [
            object_store.create(KEY, pieces(data) if number % 2 else data)
            for number in range(RACERS)
        ]

        assert set(await asyncio.gather(*racers)) == {stored_as(data)}
        assert await whole(object_store) == data

    async def test_o2_of_many_with_other_bytes_one_lands(self, object_store: ObjectStore) -> None:
        contents = [f"racer {number}".encode() for number in range(RACERS)]
        racers = [
            object_store.create(KEY, pieces(data) if number % 2 else data)
            for number, data in enumerate(contents)
        ]

        outcomes = await asyncio.gather(*racers, return_exceptions=True)

        (winner,) = [one for one in outcomes if isinstance(one, StoredObject)]
        assert winner == stored_as(await whole(object_store))
        assert sum(isinstance(one, ObjectDiffers) for one in outcomes) == RACERS - 1

    @pytest.mark.parametrize("size", [0, 10, CHUNK_BYTES, 9 * MIB])
    async def test_o3_a_source_that_breaks_leaves_nothing(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)

        with pytest.raises(ConnectionResetError, match="the source went away"):
            await object_store.create(KEY, broken(data))

        assert await object_store.head(KEY) is None
        assert await object_store.list_objects("") == []
        assert await object_store.create(KEY, data) == stored_as(data)

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    async def test_o3_a_replacement_that_breaks_leaves_the_old_bytes(
        self, object_store: ObjectStore, size: int
    ) -> None:
        await object_store.create(KEY, b"old")

        with pytest.raises(ConnectionResetError, match="the source went away"):
            await object_store.replace(KEY, broken(sample(size)))

        assert await whole(object_store) == b"old"

    async def test_o3_a_create_that_is_cancelled_leaves_nothing(
        self, object_store: ObjectStore
    ) -> None:
        stuck = asyncio.Event()

        async def source() -> AsyncIterator[bytes]:
            yield sample(17 * MIB)
            stuck.set()
            await asyncio.Event().wait()

        creating = asyncio.create_task(object_store.create(KEY, source()))
        await stuck.wait()
        creating.cancel()
        await asyncio.wait([creating])

        assert creating.cancelled()
        assert await object_store.head(KEY) is None
        assert await object_store.list_objects("") == []

    async def test_o4_memory_does_not_grow_with_the_object(
        self, object_store: ObjectStore, large_bytes: int
    ) -> None:
        await object_store.create("warm", pieces(sample(20 * MIB)))
        await whole(object_store, "warm")

        with bounded_memory(IN_FLIGHT_BYTES_MAX):
            stored = await object_store.create(KEY, numbered_blocks(large_bytes))
            sizes = [len(chunk) async for chunk in object_store.read(KEY)]

        assert stored.byte_length == sum(sizes) == large_bytes
        assert max(sizes) <= CHUNK_BYTES

    @pytest.mark.parametrize("size", SMALL_AND_LARGE)
    async def test_o6_other_bytes_take_the_place(
        self, object_store: ObjectStore, size: int
    ) -> None:
        data = sample(size)

        for form in (b"damaged", data, b"damaged again", pieces(data)):
            await object_store.replace(KEY, form)

        assert await object_store.replace(KEY, data) == stored_as(data)
        assert await whole(object_store) == data
        assert await listed(object_store, "", 10) == [KEY]

    async def test_o6_a_reader_sees_the_old_bytes_or_the_new(
        self, object_store: ObjectStore
    ) -> None:
        forms = (b"a" * 300_000, b"b" * 200_000)
        await object_store.create(KEY, forms[0])

        async def replace() -> None:
            for number in range(REPLACEMENTS):
                await object_store.replace(KEY, forms[number % 2])

        replacing = asyncio.create_task(replace())
        while not replacing.done():
            assert await whole(object_store) in forms
            await asyncio.wait([replacing], timeout=0.001)
        await replacing
