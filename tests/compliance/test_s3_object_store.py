"""The adapter of buckets on a real S3 server."""

from collections.abc import Callable

import pytest

from noetl.adapters.objectstore.connect import open_store
from noetl.kernel.errors import StoreUnavailable
from noetl.ports.object_store import ObjectStore
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.testing.bounded_memory import MIB
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.object_store_keys import KEY, whole
from noetl.testing.compliance.payload_store import PayloadStoreCompliance


@pytest.fixture
def config(s3_server: SeaweedS3Server) -> dict[str, str]:
    return {
        "endpoint": s3_server.endpoint,
        "access_key_id": s3_server.access_key,
        "secret_access_key": s3_server.secret_key,
        "region": s3_server.region,
    }


class OnS3:
    @pytest.fixture
    def reopened(self, config: dict[str, str], s3_bucket: str) -> Callable[[], ObjectStore]:
        return lambda: open_store(f"s3://{s3_bucket}/some/folder", config, allow_http=True)

    @pytest.fixture
    def object_store(self, reopened: Callable[[], ObjectStore]) -> ObjectStore:
        return reopened()

    @pytest.fixture
    def large_bytes(self) -> int:
        return 96 * MIB


@pytest.mark.servers
class TestS3ObjectStore(OnS3, ObjectStoreCompliance):
    async def test_wrong_keys_are_said(self, config: dict[str, str], s3_bucket: str) -> None:
        config["secret_access_key"] = "guessed"
        store = open_store(f"s3://{s3_bucket}", config, allow_http=True)

        with pytest.raises(StoreUnavailable, match="credentials"):
            await store.create(KEY, b"x")

    async def test_a_token_in_the_environment_does_not_join_our_keys(
        self, config: dict[str, str], s3_bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of someone else")
        store = open_store(f"s3://{s3_bucket}", config, allow_http=True)

        await store.create(KEY, b"x")
        assert await whole(store) == b"x"

    async def test_without_its_bucket_no_object_is_missing(self, config: dict[str, str]) -> None:
        store = open_store("s3://no-such-bucket", config, allow_http=True)

        with pytest.raises(StoreUnavailable, match="bucket"):
            await whole(store)

    async def test_the_url_names_bucket_and_key(
        self, object_store: ObjectStore, s3_bucket: str
    ) -> None:
        assert object_store.url("a/b") == f"s3://{s3_bucket}/some/folder/a/b"


@pytest.mark.servers
class TestS3Payloads(OnS3, PayloadStoreCompliance):
    pass
