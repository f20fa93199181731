"""A result whose bucket lost it, or is gone, is read from the bucket it was copied to."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.settings import Settings
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.results.places import Places
from noetl.servers.seaweedfs import SeaweedS3Server

pytestmark = pytest.mark.servers

ROWS = [{"number": number, "text": "x" * 100} for number in range(2_000)]
NAME = ResultName(
    tenant=DEFAULT_SCOPE.tenant_id,
    project=DEFAULT_SCOPE.organization_id,
    execution_id=ExecutionId("7012345678901234567"),
    step=StepName("load"),
)


@pytest.fixture
def second_bucket(s3_server: SeaweedS3Server) -> Iterator[str]:
    name = f"test-{secrets.token_hex(8)}"
    s3_server.create_bucket(name)
    yield name
    s3_server.delete_bucket(name)


@pytest.fixture
def settings(
    s3_server: SeaweedS3Server,
    s3_bucket: str,
    second_bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    monkeypatch.setenv("AWS_REGION", s3_server.region)
    replica = {
        "provider": "s3",
        "url": f"s3://{second_bucket}",
        "region": "us",
        "endpoint": s3_server.endpoint,
    }
    cell = {
        "name": "local",
        "provider": "s3",
        "url": f"s3://{s3_bucket}",
        "region": "eu",
        "endpoint": s3_server.endpoint,
        "replicas": [replica],
    }
    options = urlencode({"endpoint": s3_server.endpoint})
    return Settings(
        home=str(tmp_path / "home"),
        payload_url=f"s3://{s3_bucket}?{options}",
        result_cells=msgspec.json.encode({"cells": [cell]}).decode(),
        result_memory_mb=0,
        result_shared_memory_mb=0,
        result_disk_mb=0,
    )


async def test_the_copy_is_read_when_the_primary_has_lost_it(settings: Settings) -> None:
    async with open_platform(settings) as platform:
        results = platform.results
        reference = (await results.record(NAME, ROWS)).reference
        assert reference is not None
        (facts,) = await platform.objects.list_objects("noetl/")
        replica = _replica(results.chain.places)
        await replica.create(
            facts.key, b"".join([c async for c in platform.objects.read(facts.key)])
        )
        await platform.objects.delete(facts.key)

        assert await results.content(DEFAULT_SCOPE, NAME.uri, reference) == {"value": ROWS}
        assert await results.content(DEFAULT_SCOPE, NAME.uri) == {"value": ROWS}

        assert results.chain.stats().found == {"replica": 2}


async def test_the_copy_in_ones_own_region_is_read_first(settings: Settings) -> None:
    near = msgspec.structs.replace(settings, result_read_region="us")
    async with open_platform(near) as platform:
        results = platform.results
        reference = (await results.record(NAME, ROWS)).reference
        assert reference is not None
        # Not copied yet: the primary has it.
        assert await results.content(DEFAULT_SCOPE, NAME.uri, reference) == {"value": ROWS}
        (facts,) = await platform.objects.list_objects("noetl/")
        data = b"".join([chunk async for chunk in platform.objects.read(facts.key)])
        await _replica(results.chain.places).create(facts.key, data)

        assert await results.content(DEFAULT_SCOPE, NAME.uri, reference) == {"value": ROWS}

        assert results.chain.stats().found == {"object_store": 1, "replica": 1}


def _replica(places: Places):  # type: ignore[no-untyped-def]  # any adapter of a bucket
    (found,) = [place.objects for place in places.in_order() if place.is_replica]
    return found
