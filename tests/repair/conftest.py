"""One finished run for all tests of a file: each puts back what it took."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.servers.seaweedfs import SeaweedS3Server
from tests.repair.scene import Scene, without_copies


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repair")


@pytest.fixture(scope="module")
def scene(folder: Path) -> Scene:
    made = Scene(without_copies(folder / "home"), folder / "trace")
    asyncio.run(made.run())
    return made


@pytest.fixture(scope="module")
def bucket_url(s3_server: SeaweedS3Server) -> Iterator[str]:
    name = "repair"
    s3_server.create_bucket(name)
    options = "&".join(
        f"{key}={value}"
        for key, value in {
            "endpoint": s3_server.endpoint,
            "region": s3_server.region,
            "access_key_id": s3_server.access_key,
            "secret_access_key": s3_server.secret_key,
        }.items()
    )
    yield f"s3://{name}/results?{options}"
    s3_server.delete_bucket(name)


@pytest.fixture(scope="module")
def scene_on_s3(folder: Path, bucket_url: str) -> Scene:
    settings = without_copies(folder / "cloud", payload_url=bucket_url)
    made = Scene(settings, folder / "trace-s3")
    asyncio.run(made.run())
    return made
