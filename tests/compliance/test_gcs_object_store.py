"""The adapter of buckets on Google Cloud Storage. Skipped where no bucket of it is given.

There is no server of it that runs from a wheel, and an imitation would only prove itself. Give a
bucket for tests, with the driver's options: `TEST_GCS_URL='gs://bucket?service_account=key.json'`.
"""

import os
import secrets
from collections.abc import Callable

import pytest

from noetl.adapters.objectstore.connect import open_bucket
from noetl.ports.object_store import ObjectStore
from noetl.testing.bounded_memory import MIB
from noetl.testing.compliance.object_store import ObjectStoreCompliance
from noetl.testing.compliance.payload_store import PayloadStoreCompliance

BUCKET = os.environ.get("TEST_GCS_URL", "")
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not BUCKET, reason="no bucket of GCS: give one in TEST_GCS_URL"),
]


class OnGcs:
    @pytest.fixture
    def reopened(self) -> Callable[[], ObjectStore]:
        url, separator, options = BUCKET.partition("?")
        folder = f"{url.rstrip('/')}/test-{secrets.token_hex(8)}"
        return lambda: open_bucket(f"{folder}{separator}{options}")

    @pytest.fixture
    def object_store(self, reopened: Callable[[], ObjectStore]) -> ObjectStore:
        return reopened()

    @pytest.fixture
    def large_bytes(self) -> int:
        return 96 * MIB


class TestGcsObjectStore(OnGcs, ObjectStoreCompliance):
    pass


class TestGcsPayloads(OnGcs, PayloadStoreCompliance):
    pass
