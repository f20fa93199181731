"""A stage whose results lie in a bucket: slots get its keys, and nobody else sees them."""

from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameCommitted, StageEngine
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.servers.spark_cluster import SparkCluster
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.spark.driving import system_java
from tests.stages.far_engine import far_engine
from tests.stages.stage_scene import events_of, started, workers_of

ROWS = 400
ENDING_SECONDS_MAX = 300.0
"""A cluster and its first job take minutes on a busy machine."""

LOOP = f"""
workflow:
  - step: each
    loop:
      in: "{{{{ range({ROWS}) | list }}}}"
      iterator: number
      engine: spark
      spec: {{mode: parallel, frame: {{max_rows: {ROWS // 2}}}}}
    tool:
      kind: python
      code: |
        import os
        seen = sorted(name for name in os.environ if name.startswith("AWS_"))
        result = {{"text": str(number) * 500, "seen": seen}}
    next: done
  - step: done
    tool:
      kind: python
      input: {{rows: "{{{{ each.results }}}}"}}
      code: |
        result = {{"letters": sum(len(row["text"]) for row in rows),
                  "seen": sorted(set(name for row in rows for name in row["seen"]))}}
"""


@pytest.fixture
def bucket_url(s3_server: SeaweedS3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its keys are in the variables of this process."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    monkeypatch.setenv("AWS_REGION", s3_server.region)
    return f"s3://{s3_bucket}?endpoint={quote(s3_server.endpoint)}"


@pytest.mark.servers
async def test_slots_reach_the_bucket_and_show_its_keys_to_nobody(
    tmp_path: Path, s3_server: SeaweedS3Server, bucket_url: str
) -> None:
    home = str(tmp_path / "home")
    settings = Settings(home=home, payload_url=bucket_url, spark_memory_mb=512)
    async with open_engine(settings) as engine:
        await _check(engine, s3_server.secret_key)


@pytest.mark.cluster
async def test_slots_on_a_cluster_reach_the_bucket_too_and_run_code(
    tmp_path: Path, s3_server: SeaweedS3Server, bucket_url: str
) -> None:
    with SparkCluster(tmp_path / "cluster", system_java(tmp_path / "java")) as cluster:
        where = (tmp_path / "home", cluster.url, cluster.settings)
        async with far_engine(*where, payload_url=bucket_url) as engine:
            await _check(engine, s3_server.secret_key)


async def _check(engine: Engine, secret_key: str) -> None:
    execution = await started(engine, LOOP)
    ending = await engine.coordinator.ending(execution, ENDING_SECONDS_MAX)
    assert ending is not None, "it has not ended in time"
    assert ending.status == "COMPLETED", ending.error
    assert ending.result is not None
    said = plain_result(value_of(ending.result))
    assert said["letters"] == sum(len(str(each)) * 500 for each in range(ROWS))
    assert said["seen"] == []
    workers = await workers_of(engine, execution)
    assert workers
    assert all(name.startswith("spark/") for name in workers), workers
    events = await events_of(engine, execution)
    frames = [each for each in events if isinstance(each, FrameCommitted)]
    assert len(frames) == 2
    assert all(each.output_ref for each in frames)
    (job,) = [each for each in events if isinstance(each, StageEngine)]
    shown = _shown(job)
    assert job.tag in shown
    assert secret_key not in shown
    assert secret_key not in "".join(map(str, events))


def _shown(job: StageEngine) -> str:
    """What Spark's pages tell of the session and its jobs."""
    base = f"{job.ui_url}/api/v1/applications/{job.session_id}"
    pages = [f"{base}/environment", f"{base}/sql?details=true", f"{base}/jobs"]
    return "".join(urlopen(page).read().decode() for page in pages)
