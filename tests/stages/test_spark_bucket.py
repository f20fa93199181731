"""A stage whose results lie in a bucket: slots get its keys, and nobody else sees them."""

from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameCommitted, StageEngine
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.stages.stage_suite import ended, events_of, started, workers_of

pytestmark = pytest.mark.servers

ROWS = 400
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


async def test_slots_reach_the_bucket_and_show_its_keys_to_nobody(
    tmp_path: Path,
    s3_server: SeaweedS3Server,
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    monkeypatch.setenv("AWS_REGION", s3_server.region)
    settings = Settings(
        home=str(tmp_path / "home"),
        payload_url=f"s3://{s3_bucket}?endpoint={quote(s3_server.endpoint)}",
        spark_memory_mb=512,
    )
    async with open_engine(settings) as engine:
        execution = await started(engine, LOOP)
        ending = await ended(engine, execution)
        assert ending.status == "COMPLETED", ending.error
        assert ending.result is not None
        said = plain_result(value_of(ending.result))
        assert said["letters"] == sum(len(str(each)) * 500 for each in range(ROWS))
        assert said["seen"] == []
        assert all(name.startswith("spark/") for name in await workers_of(engine, execution))
        events = await events_of(engine, execution)
        stored = [each.output_ref for each in events if isinstance(each, FrameCommitted)]
        assert all(stored)
        (job,) = [each for each in events if isinstance(each, StageEngine)]
        shown = _shown(job)
    assert s3_server.secret_key not in shown
    assert s3_server.secret_key not in "".join(map(str, events))


def _shown(job: StageEngine) -> str:
    """What Spark's pages tell of the session and its jobs."""
    base = f"{job.ui_url}/api/v1/applications/{job.session_id}"
    pages = [f"{base}/environment", f"{base}/sql?details=true", f"{base}/jobs"]
    return "".join(urlopen(page).read().decode() for page in pages)
