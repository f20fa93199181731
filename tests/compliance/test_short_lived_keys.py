"""Keys that expire are asked for again before they do, and those that last are not."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from noetl.adapters.objectstore import credentials
from noetl.adapters.objectstore.connect import open_store
from noetl.kernel.errors import StoreUnavailable
from noetl.ports.object_store import ObjectStore
from noetl.servers.seaweedfs import SeaweedS3Server
from tests.compliance.short_lived import ShortLived

pytestmark = pytest.mark.servers

ALMOST_OVER, LONG = timedelta(seconds=1), timedelta(hours=1)


@pytest.fixture
def store(
    s3_server: SeaweedS3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> ObjectStore:
    keys = {"access_key_id": s3_server.access_key, "secret_access_key": s3_server.secret_key}
    known = {**credentials._PROVIDERS, ("s3", "test"): (ShortLived.__module__, "ShortLived", "-")}
    monkeypatch.setattr(credentials, "_PROVIDERS", known)
    monkeypatch.setattr(ShortLived, "keys", keys)
    monkeypatch.setattr(ShortLived, "asked", 0)
    config = {"credentials": "test", "endpoint": s3_server.endpoint, "region": s3_server.region}
    return open_store(f"s3://{s3_bucket}", config, allow_http=True)


async def written_until(store: ObjectStore, is_done: Callable[[], bool]) -> None:
    """The driver keeps keys for a tenth of a second, however short they live."""
    for number in itertools.count():
        if is_done():
            return
        await store.create(f"key-{number}", b"x")


async def test_keys_that_are_almost_over_are_asked_for_again(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShortLived, "lifetime", ALMOST_OVER)
    await written_until(store, lambda: ShortLived.asked >= 3)


@pytest.mark.parametrize("lifetime", [LONG, None])
async def test_keys_that_last_are_kept(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, lifetime: timedelta | None
) -> None:
    monkeypatch.setattr(ShortLived, "lifetime", lifetime)
    for number in range(30):
        await store.create(f"key-{number}", b"x")
    assert ShortLived.asked == 1


async def test_keys_that_were_changed_are_the_ones_that_count(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShortLived, "lifetime", ALMOST_OVER)
    good = ShortLived.keys
    await store.create("before", b"x")
    monkeypatch.setattr(ShortLived, "keys", {**good, "secret_access_key": "taken back"})
    with pytest.raises(StoreUnavailable, match="credentials"):
        await written_until(store, lambda: False)
    monkeypatch.setattr(ShortLived, "keys", good)
    asked = ShortLived.asked
    while ShortLived.asked == asked:
        with suppress(StoreUnavailable):
            await store.create("after", b"x")
    assert await store.head("after") is not None
