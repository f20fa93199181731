"""Jobs of playbooks whose results lie in a bucket: they get its keys, and show them to nobody."""

from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from noetl.adapters.objectstore.connect import open_bucket
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.spark.driver import SessionInfo
from noetl.spark.job_runner import SparkJobRunner
from noetl.spark.object_place import ObjectPlace, place_at
from tests.spark.datasets import order
from tests.spark.driving import driver_on, system_java

pytestmark = pytest.mark.servers

ROWS = "SELECT id, repeat('x', 200) AS text FROM range(3000)"


def shown(session: SessionInfo) -> str:
    """What Spark's pages tell of the session and its jobs, plans included."""
    base = f"{session.ui_url}/api/v1/applications/{session.session_id}"
    pages = [f"{base}/environment", f"{base}/sql?details=true", f"{base}/jobs"]
    return "".join(urlopen(page).read().decode() for page in pages)


async def test_jobs_read_and_store_results_in_a_bucket_with_keys_that_no_page_shows(
    tmp_path: Path, s3_server: SeaweedS3Server, s3_bucket: str
) -> None:
    url = (
        f"s3://{s3_bucket}?endpoint={quote(s3_server.endpoint)}&region={s3_server.region}"
        f"&access_key_id={s3_server.access_key}&secret_access_key={s3_server.secret_key}"
    )
    place = place_at(url, ObjectPlace(url=url).placement)
    objects = open_bucket(place.address)
    async with driver_on(system_java(tmp_path)) as driver:
        runner = SparkJobRunner(driver, objects, place)
        large = (await runner.run(order("large", query=ROWS))).reference
        assert large is not None
        query = "SELECT count(*) AS rows, sum(id) AS total FROM large"
        counted = await runner.run(order("counted", query=query, datasets={"large": large.uri}))
        pages = shown(await driver.session())
    assert counted.value == [{"rows": 3_000, "total": 4_498_500}]
    assert "noetl" in pages
    assert s3_server.secret_key not in pages
    await objects.close()
