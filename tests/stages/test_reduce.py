"""A reduce comes to the same, whatever the number of partitions it is made from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import StageOpened
from noetl.kernel import canonical_json
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.lineage import Lineage
from tests.stages.stage_scene import events_of, said, started

REDUCE = """
workload: {partitions: 1}
workflow:
  - step: split
    tool:
      kind: python
      input: {partitions: "{{ workload.partitions }}"}
      code: |
        result = {"parts": [list(range(each, 60, partitions)) for each in range(partitions)]}
    next: parts
  - step: parts
    loop:
      in: "{{ split.parts }}"
      iterator: part
      spec: {mode: fanout, max_in_flight: 4, engine: local}
    tool:
      kind: python
      input: {part: "{{ iter.part }}"}
      code: "result = [{'number': number, 'text': 'x' * 400} for number in part]"
    next: reduce
  - step: reduce
    loop:
      in: "{{ parts.results }}"
      iterator: part
      spec: {mode: parallel, engine: local, frame: {process: frame, max_rows: 100}}
    tool:
      kind: python
      input: {parts: "{{ frame.rows }}"}
      code: |
        rows = sorted((row for part in parts for row in part), key=lambda row: row["number"])
        result = {"rows": rows, "sum": sum(row["number"] for row in rows)}
    next: end
  - step: end
    tool: {kind: noop, result: "{{ reduce.results[0] }}"}
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with open_engine(Settings(home=str(tmp_path / "home"))) as engine:
        yield engine


async def test_a_reduce_of_many_partitions_is_that_of_one(engine: Engine) -> None:
    checksums = set()
    for partitions in (1, 4, 60):
        execution = await started(engine, REDUCE, partitions=partitions)
        result = await said(engine, execution)
        assert result["sum"] == sum(range(60))
        checksums.add(canonical_json.checksum(result))
        opened = [
            each for each in await events_of(engine, execution) if isinstance(each, StageOpened)
        ]
        assert [stage.stage_kind for stage in opened] == ["fanout", "reduce"]
        lineage = Lineage(engine.platform.log, engine.platform.projections)
        shards, reduced = await lineage.stages(DEFAULT_SCOPE, execution)
        assert (shards.frame_count, reduced.frame_count) == (partitions, 1)
    assert len(checksums) == 1
