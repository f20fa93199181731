"""Replicas for slots: their keys come with the task, not from the machine that a slot runs on."""

from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.adapters.objectstore.connect import open_bucket
from noetl.bootstrap.cells import cells_text
from noetl.bootstrap.results import open_results
from noetl.bootstrap.settings import Settings
from noetl.servers.seaweedfs import SeaweedS3Server


def registry(bucket: str, endpoint: str) -> str:
    replica = {"provider": "s3", "url": f"s3://{bucket}", "region": "us", "endpoint": endpoint}
    cell = {"name": "local", "provider": "file", "url": "file:", "region": "eu"}
    return msgspec.json.encode({"cells": [{**cell, "replicas": [replica]}]}).decode()


@pytest.mark.servers
async def test_a_copy_is_read_with_the_keys_that_were_given(
    tmp_path: Path, s3_server: SeaweedS3Server, s3_bucket: str
) -> None:
    given = {
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
        "AWS_REGION": s3_server.region,
    }
    options = urlencode(
        {
            "endpoint": s3_server.endpoint,
            "region": s3_server.region,
            "access_key_id": s3_server.access_key,
            "secret_access_key": s3_server.secret_key,
        }
    )
    bucket = open_bucket(f"s3://{s3_bucket}?{options}")
    await bucket.create("noetl/copy", b"copied")
    settings = Settings(home=str(tmp_path), result_cells=registry(s3_bucket, s3_server.endpoint))
    objects = FilesystemObjectStore(tmp_path / "payloads")
    async with open_results(settings, objects, given) as results:
        assert await results.chain.places.whole("noetl/copy") == b"copied"
    await bucket.close()


def test_cells_in_a_file_are_told_whole(tmp_path: Path) -> None:
    text = registry("copies", "http://minio:9000")
    (tmp_path / "cells.json").write_text(text)
    assert cells_text(Settings(result_cells=str(tmp_path / "cells.json"))) == text
    assert cells_text(Settings(result_cells=text)) == text
    assert cells_text(Settings()) is None
