"""Tables of 30 MB from step to step, through the engine and each kind of store."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.runtime.executions import Executions
from noetl.runtime.starting import StartRequest
from noetl.servers.seaweedfs import SeaweedS3Server

END_SECONDS = 120
ROWS = 1_000_000

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: tables, path: tests/tables}
workflow:
  - step: make
    tool:
      kind: python
      code: |
        import pyarrow as pa
        def batches():
            for start in range(0, 1_000_000, 100_000):
                ids = pa.array(range(start, start + 100_000), pa.int64())
                yield pa.record_batch({"id": ids, "name": ids.cast(pa.string()),
                                       "half": pa.compute.divide(ids.cast(pa.float64()), 2)})
        result = {"status": "ok", "rows": batches(), "made": "here"}
    next:
      arcs:
        - step: count
          when: "{{ make.rows[654321].name == '654321' and make.rows | length == 1000000 }}"
        - {step: lost}
  - step: count
    tool:
      kind: duckdb
      tables: {made: "{{ make.rows }}"}
      query: SELECT count(*) AS rows, sum(id) AS total FROM made WHERE half < 250000
    next: pick
  - step: pick
    tool:
      - name: again
        kind: duckdb
        tables: {made: "{{ make.rows }}"}
        query: SELECT id, name, half FROM made WHERE id >= 400000 ORDER BY id
      - name: fold
        kind: python
        tables: arrow
        input: {rows: "{{ again.rows }}", one: "{{ again.rows[5].id }}", made: "{{ make.made }}"}
        code: |
          import pyarrow.compute as pc
          result = {"sum": pc.sum(rows["id"]).as_py(), "n": rows.num_rows, "one": one,
                    "kind": type(rows).__name__, "made": made}
    next: last
  - step: last
    tool:
      kind: noop
      result: ["{{ pick.again.rows[599999].name }}", "{{ pick.fold }}", "{{ count.rows[0] }}",
               "{{ pick.again.row_count }}", "{{ make.rows[-1].half }}"]
  - {step: lost, tool: {kind: noop}}
"""


async def results_of(engine: Engine) -> Any:
    await engine.playbooks.register(engine.settings.scope, PLAYBOOK)
    request = StartRequest(scope=engine.settings.scope, path="tests/tables")
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, END_SECONDS)
    assert ending is not None
    assert ending.status == "COMPLETED", ending
    platform = engine.platform
    executions = Executions(platform.log, platform.projections, platform.results)
    state = await executions.state(engine.settings.scope, execution)
    return dict(state.results)


async def check(settings: Settings) -> None:
    async with open_engine(settings) as engine:
        results = await results_of(engine)
        last = results["last"].context["value"]
    fold = {"sum": sum(range(400_000, ROWS)), "n": 600_000, "one": 400_005, "kind": "Table"}
    count = {"rows": 500_000, "total": sum(range(500_000))}
    assert last == ["999999", fold | {"made": "here"}, count, 600_000, 499_999.5]
    made = results["make"].reference
    assert (made.row_count, made.media_type) == (ROWS, "application/vnd.apache.arrow.file")
    assert results["pick"].reference.byte_length < 100_000
    assert list((Path(settings.home) / "work").rglob("*.feather")) == []


async def test_a_large_table_goes_from_step_to_step_through_files(tmp_path: Path) -> None:
    await check(Settings(home=str(tmp_path / "home")))


@pytest.mark.servers
async def test_a_large_table_goes_from_step_to_step_through_a_bucket(
    tmp_path: Path,
    s3_server: SeaweedS3Server,
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    options = urlencode({"endpoint": s3_server.endpoint, "region": s3_server.region})
    url = f"s3://{s3_bucket}?{options}"
    await check(Settings(home=str(tmp_path / "home"), payload_url=url))
