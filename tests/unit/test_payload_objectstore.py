"""The object store adapter's edges: the driver's errors, the address, the parts of an upload."""

import inspect
from typing import Any

import obstore
import pytest
from obstore import exceptions
from obstore.store import MemoryStore

from noetl.adapters.objectstore.connect import connect
from noetl.adapters.objectstore.errors import ADVICE, missing, translated
from noetl.adapters.objectstore.payload_store import (
    PART_BYTES,
    PARTS_MAX,
    ObjectStorePayloadStore,
    part_bytes,
)
from noetl.domain.payload import payload_key
from noetl.kernel.errors import PayloadMissing, SettingInvalid, StoreUnavailable
from noetl.kernel.scope import Scope

SCOPE = Scope("acme", "research")
NOWHERE = {
    "endpoint": "http://127.0.0.1:1",
    "access_key_id": "x",
    "secret_access_key": "x",
    "region": "us-east-1",
}


def driver_errors() -> set[type[exceptions.BaseError]]:
    """Every class that says what went wrong; the driver raises FileNotFoundError for NotFound."""
    classes: list[type] = [cls for _, cls in inspect.getmembers(exceptions, inspect.isclass)]
    return set(classes) - {exceptions.BaseError, exceptions.NotFoundError}


def test_every_error_of_the_driver_has_advice() -> None:
    assert set(ADVICE) == driver_errors()


@pytest.mark.parametrize("kind", sorted(driver_errors(), key=str))
def test_an_error_of_the_driver_becomes_ours(kind: type[exceptions.BaseError]) -> None:
    with (
        pytest.raises(StoreUnavailable, match=r"some-uri: .* \(why\)") as raised,
        translated("some-uri"),
    ):
        raise kind("why\n\nDebug source: much more")

    assert isinstance(raised.value.__cause__, kind)
    assert ADVICE[kind] in str(raised.value)


def test_what_is_not_found_is_missing() -> None:
    with pytest.raises(PayloadMissing, match="some-uri"), translated("x"), missing("some-uri"):
        raise FileNotFoundError("404 <Code>NoSuchKey</Code>")


def test_without_its_bucket_nothing_is_known_to_be_missing() -> None:
    with pytest.raises(StoreUnavailable, match="bucket"), translated("x"), missing("some-uri"):
        raise FileNotFoundError("404 <Code>NoSuchBucket</Code>")


async def test_a_store_that_does_not_answer_is_unavailable() -> None:
    store = ObjectStorePayloadStore(
        connect("s3://bucket", NOWHERE, allow_http=True, retry_seconds_max=0.0)
    )
    reference = await ObjectStorePayloadStore(MemoryStore()).put(SCOPE, b"x", "text/plain")

    with pytest.raises(StoreUnavailable):
        await store.put(SCOPE, b"x", "text/plain")
    with pytest.raises(StoreUnavailable):
        await anext(store.get(reference))
    with pytest.raises(StoreUnavailable):
        await store.exists(reference)
    with pytest.raises(StoreUnavailable):
        await store.delete(reference)
    with pytest.raises(StoreUnavailable):
        await store.list_stored(SCOPE)


@pytest.mark.parametrize(
    ("url", "config"),
    [
        ("file:///some/folder", None),
        ("https://example.org", None),
        ("nonsense", None),
        ("s3://", None),
        ("s3://bucket", {"no_such_setting": "x"}),
        ("s3://bucket", {"endpoint": 5}),
        ("memory://", {"region": "x"}),
    ],
)
def test_a_wrong_address_is_refused_at_once(url: str, config: dict[str, Any] | None) -> None:
    with pytest.raises(SettingInvalid, match=url):
        connect(url, config)


@pytest.mark.parametrize("url", ["s3://bucket/folder", "gs://bucket", "memory:///"])
def test_addresses_are_known(url: str) -> None:
    assert connect(url, None) is not None


def test_azure_needs_an_account() -> None:
    assert connect("az://container", {"account_name": "x", "account_key": "eA=="}) is not None


async def test_strangers_in_the_folder_are_not_listed() -> None:
    driver = MemoryStore()
    store = ObjectStorePayloadStore(driver)
    reference = await store.put(SCOPE, b"ours", "text/plain")
    await obstore.put_async(driver, "acme/research/README", b"not a payload")
    await obstore.put_async(driver, "acme/research/zz/README", b"not a payload")

    (stored,) = await store.list_stored(SCOPE, limit=1)

    assert stored.sha256 == reference.sha256
    assert await store.list_stored(SCOPE, after_sha256=stored.sha256) == []


async def test_the_object_carries_the_media_type_for_other_readers() -> None:
    driver = MemoryStore()

    reference = await ObjectStorePayloadStore(driver).put(SCOPE, b"{}", "application/json")

    found = await obstore.get_async(driver, payload_key(SCOPE, reference.sha256))
    assert found.attributes == {"Content-Type": "application/json"}


@pytest.mark.parametrize("byte_length", [PART_BYTES + 1, PART_BYTES * PARTS_MAX + 1, 5 * 1024**4])
def test_an_upload_never_has_too_many_parts(byte_length: int) -> None:
    assert byte_length / part_bytes(byte_length) <= PARTS_MAX
