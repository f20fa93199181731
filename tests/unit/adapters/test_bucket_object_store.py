"""The edges of the adapter of buckets: errors of the driver, addresses, keys, places."""

import inspect
import sys
from types import ModuleType
from typing import Any

import obstore
import pytest
from obstore import exceptions
from obstore.store import MemoryStore

from noetl.adapters.objectstore.connect import connect, open_bucket
from noetl.adapters.objectstore.errors import ADVICE, missing, translated
from noetl.adapters.objectstore.object_store import (
    PART_BYTES,
    PARTS_AT_ONCE_MAX,
    BucketObjectStore,
)
from noetl.kernel.errors import ObjectMissing, SettingInvalid, StoreUnavailable
from noetl.ports.object_store import IN_FLIGHT_BYTES_MAX

KEY = "some/object"
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
        pytest.raises(StoreUnavailable, match=r"some-url: .* \(why\)") as raised,
        translated("some-url"),
    ):
        raise kind("why\n\nDebug source: much more")

    assert isinstance(raised.value.__cause__, kind)
    assert ADVICE[kind] in str(raised.value)


def test_what_is_not_found_is_missing() -> None:
    with pytest.raises(ObjectMissing, match="some-url"), translated("x"), missing("some-url"):
        raise FileNotFoundError("404 <Code>NoSuchKey</Code>")


def test_without_its_bucket_nothing_is_known_to_be_missing() -> None:
    with pytest.raises(StoreUnavailable, match="bucket"), translated("x"), missing("some-url"):
        raise FileNotFoundError("404 <Code>NoSuchBucket</Code>")


async def test_a_store_that_does_not_answer_is_unavailable() -> None:
    store = BucketObjectStore(
        connect("s3://bucket", NOWHERE, allow_http=True, retry_seconds_max=0.0), "s3://bucket"
    )

    for call in (
        lambda: store.create(KEY, b"x"),
        lambda: store.create(KEY, bytes(PART_BYTES + 1)),
        lambda: store.replace(KEY, b"x"),
        lambda: anext(store.read(KEY)),
        lambda: store.read_range(KEY, 0, 1),
        lambda: store.head(KEY),
        lambda: store.delete(KEY),
        lambda: store.list_objects(""),
    ):
        with pytest.raises(StoreUnavailable, match="s3://bucket"):
            await call()


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


async def test_the_object_carries_the_media_type_for_other_readers() -> None:
    driver = MemoryStore()
    store = BucketObjectStore(driver)

    await store.create("small", b"{}", media_type="application/json")
    await store.create("large", bytes(PART_BYTES + 1), media_type="application/json")

    for key in ("small", "large"):
        found = await obstore.get_async(driver, key)
        assert found.attributes == {"Content-Type": "application/json"}


def test_parts_on_their_way_stay_within_the_bound() -> None:
    assert (PARTS_AT_ONCE_MAX + 2) * PART_BYTES <= IN_FLIGHT_BYTES_MAX


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("s3://bucket/some/folder?endpoint=http://localhost:1", "s3://bucket/some/folder/a/b"),
        ("gs://bucket", "gs://bucket/a/b"),
        ("az://container/?account_name=x&account_key=eA==", "az://container/a/b"),
        ("memory:///", "memory:///a/b"),
    ],
)
def test_other_programs_know_an_object_by_its_url(address: str, url: str) -> None:
    store = open_bucket(address)

    assert store.url("a/b") == url
    assert store.local_path("a/b") is None


@pytest.mark.parametrize(
    ("address", "kind", "path"),
    [
        ("s3://bucket/folder?endpoint=http://localhost:1&region=x", "s3", "bucket/folder/a/b"),
        ("gs://bucket?skip_signature=true", "gcs", "bucket/a/b"),
        ("az://container?account_name=x&account_key=eA==", "abfs", "container/a/b"),
    ],
)
def test_pyarrow_has_a_client_of_its_own_for_a_bucket(address: str, kind: str, path: str) -> None:
    store = open_bucket(address)
    first, second = store.arrow_file("a/b"), store.arrow_file("c")

    assert first is not None
    assert second is not None
    assert (first.filesystem.type_name, first.path) == (kind, path)
    assert first.filesystem is second.filesystem


def test_pyarrow_cannot_look_into_memory() -> None:
    assert open_bucket("memory:///").arrow_file("a/b") is None


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("s3://bucket?credentials=google", "is not known for s3://; use boto3 for s3://"),
        ("s3://bucket?role_arn=arn:x", "credentials=boto3 only"),
        ("gs://bucket?credentials=boto3", "is not known for gs://"),
    ],
)
def test_credentials_of_another_cloud_are_refused(address: str, reason: str) -> None:
    with pytest.raises(SettingInvalid, match=reason):
        open_bucket(address)


@pytest.mark.parametrize(
    ("address", "module", "packages"),
    [
        ("s3://bucket?credentials=boto3", "boto3", "boto3"),
        ("s3://bucket?credentials=boto3&role_arn=arn:x", "boto3", "boto3"),
        ("gs://bucket?credentials=google", "google", "google-auth requests"),
        ("az://container?credentials=azure&account_name=x", "azure", "azure-identity"),
    ],
)
def test_a_library_of_a_cloud_that_is_not_there_is_named(
    address: str, module: str, packages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"obstore.auth.{module}", raising=False)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(SettingInvalid, match=f"pip install {packages}"):
        open_bucket(address)


async def test_keys_that_expire_are_fetched_from_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, str]] = []

    class Provider:
        def __init__(self, **role: str) -> None:
            self._role = role

        def __call__(self) -> dict[str, object]:
            asked.append(self._role)
            return {"access_key_id": "x", "secret_access_key": "x", "expires_at": None}

    library = ModuleType("obstore.auth.boto3")
    library.StsCredentialProvider = Provider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, library.__name__, library)
    config = {"endpoint": NOWHERE["endpoint"], "credentials": "boto3", "role_arn": "arn:x"}
    driver = connect("s3://bucket", config, allow_http=True, retry_seconds_max=0.0)

    with pytest.raises(StoreUnavailable):
        await BucketObjectStore(driver).head(KEY)

    assert asked == [{"RoleArn": "arn:x", "RoleSessionName": "noetl"}]
