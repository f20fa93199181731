"""The ObjectStore's promises about keys and places, O5 and O7 to O11: a part of its suite."""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable

import pytest

from noetl.kernel.errors import ObjectKeyInvalid, ObjectMissing
from noetl.ports.object_store import ObjectStore, StoredObject
from noetl.testing.byte_streams import collect, sample

KEY = "noetl/env=dev/execution=12/results/load%3Afetch/0/0/1.feather"

# Signs that sort before, at and after the slash, and what encoders of names leave behind.
NEIGHBOURS = (
    "a-b/x",
    "a.b/x",
    "a/b",
    "a/c/d",
    "a0",
    "a=b/x",
    "a%2Fb/x",
    "a@2",
    "a~",
    "A/b",
    "z" * 255 + "/x",
)
NO_KEYS = (
    *("", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/.", ".a", "a."),
    *("a b", "a\nb", "a\\b", "ü", "a\x00", "x" * 256, "/".join(["x" * 200] * 6)),
)


async def whole(store: ObjectStore, key: str = KEY) -> bytes:
    return await collect(store.read(key), bytearray())


def stored_as(data: bytes, key: str = KEY) -> StoredObject:
    return StoredObject(key, hashlib.sha256(data).hexdigest(), len(data))


async def listed(store: ObjectStore, prefix: str, limit: int) -> list[str]:
    keys: list[str] = []
    while page := await store.list_objects(prefix, after=keys[-1] if keys else "", limit=limit):
        assert len(page) <= limit
        keys += [facts.key for facts in page]
    return keys


class ObjectStoreKeysCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def object_store(self) -> ObjectStore: ...

    @pytest.fixture
    @abstractmethod
    def reopened(self) -> Callable[[], ObjectStore]:
        """Another store over the same place, as another process has it."""

    async def test_o5_what_is_not_there_is_missing(self, object_store: ObjectStore) -> None:
        await object_store.create(KEY, b"x")

        for key in ("noetl", "noetl/env=dev", "noetl/env=dev/other", f"{KEY}x"):
            assert await object_store.head(key) is None
            with pytest.raises(ObjectMissing, match=key):
                await whole(object_store, key)
            for length in (0, 5):
                with pytest.raises(ObjectMissing, match=key):
                    await object_store.read_range(key, 0, length)

    @pytest.mark.parametrize("limit", [1, 3, 1_000])
    async def test_o7_every_key_is_named_once(self, object_store: ObjectStore, limit: int) -> None:
        for key in NEIGHBOURS:
            await object_store.create(key, b"x")

        keys = await listed(object_store, "", limit)

        assert sorted(keys) == sorted(NEIGHBOURS)
        assert await listed(object_store, "a/", limit) == ["a/b", "a/c/d"]
        assert await listed(object_store, "a/c/", limit) == ["a/c/d"]
        assert await listed(object_store, "b/", limit) == []

    async def test_o7_names_in_a_folder_rise(self, object_store: ObjectStore) -> None:
        keys = [f"some/folder/{number:03}.json" for number in range(25)]
        for key in reversed(keys):
            await object_store.create(key, b"12345")

        page = await object_store.list_objects("some/folder/", after=keys[4], limit=7)

        assert [(facts.key, facts.byte_length) for facts in page] == [
            (key, 5) for key in keys[5:12]
        ]
        assert await listed(object_store, "some/", 7) == keys
        between = await object_store.list_objects("some/", after="some/folder/010.k", limit=1)
        assert [facts.key for facts in between] == [keys[11]]

    async def test_o8_deleting_removes_that_object_only(self, object_store: ObjectStore) -> None:
        for key in (KEY, f"{KEY}.json", "other"):
            await object_store.create(key, b"x")

        await object_store.delete(KEY)
        await object_store.delete(KEY)
        await object_store.delete("noetl")

        assert await object_store.head(KEY) is None
        assert sorted(await listed(object_store, "", 10)) == [f"{KEY}.json", "other"]
        assert await object_store.create(KEY, b"other bytes") == stored_as(b"other bytes")

    @pytest.mark.parametrize("key", NO_KEYS)
    async def test_o9_what_is_no_key_leads_nowhere(
        self, object_store: ObjectStore, key: str
    ) -> None:
        calls = (
            lambda: object_store.create(key, b"x"),
            lambda: object_store.replace(key, b"x"),
            lambda: whole(object_store, key),
            lambda: object_store.read_range(key, 0, 1),
            lambda: object_store.head(key),
            lambda: object_store.delete(key),
        )
        for call in calls:
            with pytest.raises(ObjectKeyInvalid):
                await call()
        for place in (object_store.url, object_store.local_path, object_store.arrow_file):
            with pytest.raises(ObjectKeyInvalid):
                place(key)

    @pytest.mark.parametrize("prefix", ["/", "a", "a//", "../", "/a/", "a/../"])
    async def test_o9_a_prefix_is_a_folder(self, object_store: ObjectStore, prefix: str) -> None:
        with pytest.raises(ObjectKeyInvalid):
            await object_store.list_objects(prefix)

    async def test_o10_places_lead_to_the_bytes(self, object_store: ObjectStore) -> None:
        data = sample(300_000)
        await object_store.create(KEY, data)

        assert object_store.url(KEY).endswith(f"/{KEY}")
        path = object_store.local_path(KEY)
        if path is not None:
            assert (path.read_bytes(), str(path)) == (data, object_store.url(KEY))
        found = object_store.arrow_file(KEY)
        assert object_store.is_direct == (path is not None or found is not None)
        if found is not None:
            with found.filesystem.open_input_file(found.path) as file:
                assert await asyncio.to_thread(file.read) == data

    async def test_o11_another_process_finds_what_was_created(
        self, object_store: ObjectStore, reopened: Callable[[], ObjectStore]
    ) -> None:
        await object_store.create(KEY, b"created")
        await object_store.replace("replaced", b"replaced")

        other = reopened()

        assert await whole(other) == b"created"
        assert await whole(other, "replaced") == b"replaced"
        await other.close()
