"""The PayloadStore's promises as tests, over any object store: subclass and give a fixture."""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from noetl.domain.payload import PayloadReference, StoredPayload, payload_key, payload_uri
from noetl.kernel.errors import PayloadCorrupt, PayloadMissing, ScopeMissing
from noetl.kernel.scope import Scope
from noetl.ports.object_store import CHUNK_BYTES, ObjectStore
from noetl.ports.payload_store import PayloadStore
from noetl.results.payloads import ObjectPayloadStore
from noetl.testing.bounded_memory import MIB, bounded_memory
from noetl.testing.byte_streams import broken, collect, numbered_blocks, pieces, sample

SCOPE = Scope("acme", "research")
TEXT = "text/plain"

SIZES = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7, 20 * MIB + 1)
RACED_SIZES = (10, 9 * MIB)  # the second goes to a bucket in parts
RACERS = 16
MEMORY_GROWTH_BYTES_MAX = 56 * MIB

STRANGE_NAMES = ("..", ".", "../..", "a/b", "/", "a b", "a%2Fb", "ü", "~", "*", "a\\b", "A")
NEIGHBOURS = (Scope("acme", "research2"), Scope("acme2", "research"), Scope("research", "acme"))

Damage = Callable[[PayloadReference, bytes], Awaitable[None]]
"""Write other bytes in the place of an object, behind the store's back."""


async def whole(store: PayloadStore, reference: PayloadReference) -> bytes:
    return await collect(store.get(reference), bytearray())


def reference_for(data: bytes, scope: Scope = SCOPE) -> PayloadReference:
    sha256 = hashlib.sha256(data).hexdigest()
    return PayloadReference(
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        uri=payload_uri(scope, sha256),
        sha256=sha256,
        media_type=TEXT,
        byte_length=len(data),
    )


class PayloadStoreCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def object_store(self) -> ObjectStore: ...

    @pytest.fixture
    def payload_store(self, object_store: ObjectStore) -> PayloadStore:
        return ObjectPayloadStore(object_store)

    @pytest.fixture
    def damage(self, object_store: ObjectStore) -> Damage:
        async def overwrite(reference: PayloadReference, data: bytes) -> None:
            await object_store.replace(payload_key(reference.scope, reference.sha256), data)

        return overwrite

    @pytest.fixture
    def large_bytes(self) -> int:
        """How much to stream through in the test of B4."""
        return 200 * MIB

    @pytest.mark.parametrize("size", SIZES)
    async def test_b1_what_is_put_is_what_is_got(
        self, payload_store: PayloadStore, size: int
    ) -> None:
        data = sample(size)

        reference = await payload_store.put(SCOPE, data, TEXT)

        assert reference == reference_for(data)
        assert await whole(payload_store, reference) == data
        assert await payload_store.exists(reference)

    @pytest.mark.parametrize("size", SIZES)
    async def test_b1_a_stream_is_stored_like_its_bytes(
        self, payload_store: PayloadStore, size: int
    ) -> None:
        data = sample(size)

        reference = await payload_store.put(SCOPE, pieces(data), TEXT)

        assert reference == reference_for(data)
        assert await whole(payload_store, reference) == data

    @pytest.mark.parametrize("media_type", ["", "text/ü", "a\nb: c", "x" * 1_000])
    async def test_b1_a_media_type_is_any_text(
        self, payload_store: PayloadStore, media_type: str
    ) -> None:
        reference = await payload_store.put(SCOPE, b"data", media_type)

        assert reference.media_type == media_type
        assert await whole(payload_store, reference) == b"data"

    async def test_b2_equal_bytes_are_one_object(self, payload_store: PayloadStore) -> None:
        first = await payload_store.put(SCOPE, b"same", TEXT)
        second = await payload_store.put(SCOPE, pieces(b"same", 1), TEXT)
        third = await payload_store.put(SCOPE, b"same", "application/json")

        assert first == second
        assert (third.uri, third.media_type) == (first.uri, "application/json")
        assert await payload_store.list_stored(SCOPE) == [StoredPayload(first.sha256, 4)]

    async def test_b2_another_scope_has_its_own_object(self, payload_store: PayloadStore) -> None:
        reference = await payload_store.put(SCOPE, b"same", TEXT)

        for scope in NEIGHBOURS:
            assert not await payload_store.exists(reference_for(b"same", scope))
            assert await payload_store.list_stored(scope) == []
            await payload_store.delete(await payload_store.put(scope, b"same", TEXT))

        assert await whole(payload_store, reference) == b"same"

    async def test_b2_strange_names_stay_apart(self, payload_store: PayloadStore) -> None:
        scopes = [Scope(*pair) for name in STRANGE_NAMES for pair in ((name, "x"), ("x", name))]

        references = [
            await payload_store.put(scope, repr(scope).encode(), TEXT) for scope in scopes
        ]

        for scope, reference in zip(scopes, references, strict=True):
            assert await whole(payload_store, reference) == repr(scope).encode()
            (stored,) = await payload_store.list_stored(scope)
            assert stored.sha256 == reference.sha256

    async def test_b2_a_scope_without_a_name_is_refused(self, payload_store: PayloadStore) -> None:
        for scope in (Scope("", "x"), Scope("x", "")):
            with pytest.raises(ScopeMissing):
                await payload_store.put(scope, b"x", TEXT)
            with pytest.raises(ScopeMissing):
                await payload_store.list_stored(scope)

    @pytest.mark.parametrize("size", RACED_SIZES)
    async def test_b3_putting_again_does_not_touch_the_object(
        self, payload_store: PayloadStore, damage: Damage, size: int
    ) -> None:
        data = sample(size)
        reference = await payload_store.put(SCOPE, data, TEXT)
        await damage(reference, b"not the same")

        assert await payload_store.put(SCOPE, data, TEXT) == reference
        assert await payload_store.put(SCOPE, pieces(data), TEXT) == reference

        with pytest.raises(PayloadCorrupt):
            await whole(payload_store, reference)

    @pytest.mark.parametrize("size", RACED_SIZES)
    async def test_b3_of_many_racing_writers_all_get_the_same(
        self, payload_store: PayloadStore, size: int
    ) -> None:
        data = sample(size)
        racers = [
            payload_store.put(SCOPE, pieces(data) if number % 2 else data, TEXT)
            for number in range(RACERS)
        ]

        references = await asyncio.gather(*racers)

        assert set(references) == {reference_for(data)}
        assert len(await payload_store.list_stored(SCOPE)) == 1
        assert await whole(payload_store, references[0]) == data

    async def test_b4_memory_does_not_grow_with_the_payload(
        self, payload_store: PayloadStore, large_bytes: int
    ) -> None:
        await whole(payload_store, await payload_store.put(SCOPE, pieces(sample(9 * MIB)), TEXT))

        with bounded_memory(MEMORY_GROWTH_BYTES_MAX):
            reference = await payload_store.put(SCOPE, numbered_blocks(large_bytes), TEXT)
            sizes = [len(chunk) async for chunk in payload_store.get(reference)]

        assert reference.byte_length == sum(sizes) == large_bytes
        assert max(sizes) <= 2 * CHUNK_BYTES

    @pytest.mark.parametrize("size", [0, 10, CHUNK_BYTES, 9 * MIB])
    async def test_b5_a_source_that_breaks_leaves_nothing(
        self, payload_store: PayloadStore, size: int
    ) -> None:
        data = sample(size)

        with pytest.raises(ConnectionResetError, match="the source went away"):
            await payload_store.put(SCOPE, broken(data), TEXT)

        assert await payload_store.list_stored(SCOPE) == []
        assert not await payload_store.exists(reference_for(data))
        assert await whole(payload_store, await payload_store.put(SCOPE, data, TEXT)) == data

    async def test_b5_a_put_that_is_cancelled_leaves_nothing(
        self, payload_store: PayloadStore
    ) -> None:
        data = sample(9 * MIB)
        stuck = asyncio.Event()

        async def source() -> AsyncIterator[bytes]:
            yield data
            stuck.set()
            await asyncio.Event().wait()

        putting = asyncio.create_task(payload_store.put(SCOPE, source(), TEXT))
        await stuck.wait()
        putting.cancel()
        await asyncio.wait([putting])

        assert putting.cancelled()
        assert await payload_store.list_stored(SCOPE) == []
        assert not await payload_store.exists(reference_for(data))

    async def test_b6_what_is_not_there_is_missing(self, payload_store: PayloadStore) -> None:
        reference = reference_for(b"never put")

        assert not await payload_store.exists(reference)
        with pytest.raises(PayloadMissing, match=reference.sha256):
            await whole(payload_store, reference)

    @pytest.mark.parametrize("digest", ["", "..", "../../x", "A" * 64, "0" * 63, "0" * 64 + "\n"])
    async def test_b6_what_is_no_digest_leads_nowhere(
        self, payload_store: PayloadStore, digest: str
    ) -> None:
        reference = msgspec.structs.replace(reference_for(b"x"), sha256=digest)

        with pytest.raises(PayloadMissing):
            await whole(payload_store, reference)

    @pytest.mark.parametrize("size", [1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7])
    @pytest.mark.parametrize("kind", ["flipped", "shortened", "lengthened", "emptied"])
    async def test_b6_damage_is_noticed_before_the_last_chunk(
        self, payload_store: PayloadStore, damage: Damage, size: int, kind: str
    ) -> None:
        data = sample(size)
        changed = {
            "flipped": data[:-1] + bytes([data[-1] ^ 1]),
            "shortened": data[:-1],
            "lengthened": data + b"x",
            "emptied": b"",
        }[kind]
        reference = await payload_store.put(SCOPE, data, TEXT)
        await damage(reference, changed)

        received = bytearray()
        with pytest.raises(PayloadCorrupt, match=reference.uri):
            await collect(payload_store.get(reference), received)

        assert len(received) < len(changed) or changed == b""

    async def test_b7_pages_name_every_object_once_in_order(
        self, payload_store: PayloadStore
    ) -> None:
        put = [await payload_store.put(SCOPE, sample(size), TEXT) for size in range(25)]
        for scope in NEIGHBOURS:
            await payload_store.put(scope, b"not theirs", TEXT)

        listed: list[StoredPayload] = []
        for expected_size in (7, 7, 7, 4, 0):
            last = listed[-1].sha256 if listed else ""
            page = await payload_store.list_stored(SCOPE, after_sha256=last, limit=7)
            assert len(page) == expected_size
            listed += page

        expected = sorted((reference.sha256, reference.byte_length) for reference in put)
        assert [(stored.sha256, stored.byte_length) for stored in listed] == expected

    async def test_b8_deleting_removes_that_object_only(self, payload_store: PayloadStore) -> None:
        gone = await payload_store.put(SCOPE, b"gone", TEXT)
        kept = await payload_store.put(SCOPE, b"kept", TEXT)

        await payload_store.delete(gone)
        await payload_store.delete(gone)

        assert not await payload_store.exists(gone)
        with pytest.raises(PayloadMissing):
            await whole(payload_store, gone)
        assert await payload_store.list_stored(SCOPE) == [StoredPayload(kept.sha256, 4)]
        assert await whole(payload_store, kept) == b"kept"

    async def test_b8_what_was_deleted_can_be_put_again(self, payload_store: PayloadStore) -> None:
        reference = await payload_store.put(SCOPE, b"again", TEXT)
        await payload_store.delete(reference)

        assert await payload_store.put(SCOPE, b"again", TEXT) == reference
        assert await whole(payload_store, reference) == b"again"
