"""A stage whose results lie in a bucket, and what must hold of the bucket's keys."""

from urllib.parse import quote
from urllib.request import urlopen

import pytest

from noetl.bootstrap.engine import Engine
from noetl.domain.events import FrameCommitted, StageEngine
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
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


def url_of_bucket(server: SeaweedS3Server, bucket: str, patch: pytest.MonkeyPatch) -> str:
    """Its keys are in the variables of this process."""
    patch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    patch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    patch.setenv("AWS_REGION", server.region)
    return f"s3://{bucket}?endpoint={quote(server.endpoint)}"


async def check_bucket(engine: Engine, secret_key: str) -> None:
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
