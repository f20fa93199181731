"""Payloads among other objects: old homes, damaged objects, and no room to spool."""

import hashlib
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.objectstore.object_store import BucketObjectStore
from noetl.domain.payload import StoredPayload, payload_key, reference_to
from noetl.kernel.errors import PayloadCorrupt, StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.results.payloads import SPOOL_MEMORY_BYTES_MAX, ObjectPayloadStore
from noetl.testing.byte_streams import collect, pieces, sample

SCOPE = Scope("acme", "research")
TEXT = "text/plain"


async def test_a_folder_of_an_earlier_build_is_read(tmp_path: Path) -> None:
    data = b"written long ago"
    digest = hashlib.sha256(data).hexdigest()
    path = tmp_path / "acme" / "research" / digest[:2] / digest[2:4] / digest
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    objects = FilesystemObjectStore(tmp_path)
    payloads = ObjectPayloadStore(objects)

    stored = StoredPayload(digest, len(data))
    assert await payloads.list_stored(SCOPE) == [stored]
    reference = reference_to(SCOPE, stored, TEXT)
    assert await collect(payloads.get(reference), bytearray()) == data
    assert await payloads.put(SCOPE, data, TEXT) == reference
    await objects.close()


async def test_a_payload_lies_where_it_always_lay(tmp_path: Path) -> None:
    objects = FilesystemObjectStore(tmp_path)

    reference = await ObjectPayloadStore(objects).put(SCOPE, b"data", TEXT)

    digest = reference.sha256
    path = tmp_path / "acme" / "research" / digest[:2] / digest[2:4] / digest
    assert path.read_bytes() == b"data"
    await objects.close()


async def test_other_objects_of_the_store_are_no_payloads() -> None:
    objects = MemoryObjectStore()
    payloads = ObjectPayloadStore(objects)
    references = [await payloads.put(SCOPE, sample(size), TEXT) for size in range(5)]
    for name in ("00/README", "README", "zz/README", "ff/ff/README"):
        await objects.create(f"acme/research/{name}", b"not a payload")

    digests: list[str] = []
    while page := await payloads.list_stored(
        SCOPE, after_sha256=digests[-1] if digests else "", limit=2
    ):
        digests += [stored.sha256 for stored in page]

    assert digests == sorted(reference.sha256 for reference in references)


async def test_a_damaged_payload_is_left_to_repair() -> None:
    objects = MemoryObjectStore()
    payloads = ObjectPayloadStore(objects)
    reference = await payloads.put(SCOPE, b"data", TEXT)
    await objects.replace(payload_key(SCOPE, reference.sha256), b"other")

    assert await payloads.put(SCOPE, b"data", TEXT) == reference
    with pytest.raises(PayloadCorrupt):
        await collect(payloads.get(reference), bytearray())


async def test_the_media_type_reaches_the_object() -> None:
    driver = MemoryStore()

    reference = await ObjectPayloadStore(BucketObjectStore(driver)).put(
        SCOPE, b"{}", "application/json"
    )

    found = await obstore.get_async(driver, payload_key(SCOPE, reference.sha256))
    assert found.attributes == {"Content-Type": "application/json"}


async def test_no_room_to_spool_is_said(tmp_path: Path) -> None:
    payloads = ObjectPayloadStore(MemoryObjectStore(), spool_folder=tmp_path / "missing")

    with pytest.raises(StoreUnavailable, match="no room to spool"):
        await payloads.put(SCOPE, pieces(sample(2 * SPOOL_MEMORY_BYTES_MAX)), TEXT)

    assert await payloads.list_stored(SCOPE) == []
