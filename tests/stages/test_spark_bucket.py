"""A stage whose results lie in a bucket: slots get its keys, and nobody else sees them."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.servers.seaweedfs import SeaweedS3Server
from tests.stages.bucket_stage import check_bucket, url_of_bucket


@pytest.mark.servers
async def test_slots_reach_the_bucket_and_show_its_keys_to_nobody(
    tmp_path: Path, s3_server: SeaweedS3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_of_bucket(s3_server, s3_bucket, monkeypatch)
    settings = Settings(home=str(tmp_path / "home"), payload_url=url, spark_memory_mb=512)
    async with open_engine(settings) as engine:
        await check_bucket(engine, s3_server.secret_key)
