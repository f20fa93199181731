"""The object store adapter on a real S3 server."""

import obstore
import pytest
from obstore.store import ObjectStore

from noetl.adapters.objectstore.connect import connect
from noetl.adapters.objectstore.payload_store import ObjectStorePayloadStore
from noetl.domain.payload import PayloadReference, payload_key
from noetl.kernel.errors import StoreUnavailable
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.testing.bounded_memory import MIB
from noetl.testing.compliance.payload_store import (
    SCOPE,
    TEXT,
    Damage,
    PayloadStoreCompliance,
    reference_for,
    whole,
)


@pytest.fixture
def config(s3_server: SeaweedS3Server) -> dict[str, str]:
    return {
        "endpoint": s3_server.endpoint,
        "access_key_id": s3_server.access_key,
        "secret_access_key": s3_server.secret_key,
        "region": s3_server.region,
    }


@pytest.mark.servers
class TestS3PayloadStore(PayloadStoreCompliance):
    @pytest.fixture
    def driver(self, config: dict[str, str], s3_bucket: str) -> ObjectStore:
        return connect(f"s3://{s3_bucket}/some/folder", config, allow_http=True)

    @pytest.fixture
    def payload_store(self, driver: ObjectStore) -> ObjectStorePayloadStore:
        return ObjectStorePayloadStore(driver)

    @pytest.fixture
    def damage(self, driver: ObjectStore) -> Damage:
        async def overwrite(reference: PayloadReference, data: bytes) -> None:
            key = payload_key(reference.scope, reference.sha256)
            await obstore.put_async(driver, key, data)

        return overwrite

    @pytest.fixture
    def large_bytes(self) -> int:
        return 96 * MIB

    async def test_wrong_keys_are_said(self, config: dict[str, str], s3_bucket: str) -> None:
        config["secret_access_key"] = "guessed"
        store = ObjectStorePayloadStore(connect(f"s3://{s3_bucket}", config, allow_http=True))

        with pytest.raises(StoreUnavailable, match="credentials"):
            await store.put(SCOPE, b"x", TEXT)

    async def test_a_token_in_the_environment_does_not_join_our_keys(
        self, config: dict[str, str], s3_bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of someone else")
        store = ObjectStorePayloadStore(connect(f"s3://{s3_bucket}", config, allow_http=True))

        assert await whole(store, await store.put(SCOPE, b"x", TEXT)) == b"x"

    async def test_without_its_bucket_no_payload_is_missing(self, config: dict[str, str]) -> None:
        store = ObjectStorePayloadStore(connect("s3://no-such-bucket", config, allow_http=True))

        with pytest.raises(StoreUnavailable, match="bucket"):
            await whole(store, reference_for(b"x"))
