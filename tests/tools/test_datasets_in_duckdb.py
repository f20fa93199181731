"""DuckDB over the dataset of a loop, by its name."""

from pathlib import Path
from typing import Any

import pytest

from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.tool import ToolFailed
from noetl.results.dataset import DatasetManifest, DatasetPart, frame_content
from noetl.results.store import ResultStore
from noetl.tools.duckdb import DuckdbTool
from tests.tools.calls import call, services

COORDINATES: dict[str, Any] = {
    "tenant": DEFAULT_SCOPE.tenant_id,
    "project": DEFAULT_SCOPE.organization_id,
    "execution_id": ExecutionId("655648128737706002"),
    "step": StepName("load"),
}


async def test_a_dataset_of_many_files_is_one_table(tmp_path: Path) -> None:
    given = services(tmp_path)
    results = given.results
    assert isinstance(results, ResultStore)
    parts: list[DatasetPart] = []
    for frame in range(3):
        rows = [
            {"index": row, "status": "ok", "value": {"id": frame * 10 + row, "text": "x"}}
            for row in range(10)
        ]
        name = ResultName(**COORDINATES, frame=frame)
        reference = await results.stage_rows(name, frame_content(rows))
        parts.append(DatasetPart(first=frame * 10, rows=10, reference=reference))
    manifest = DatasetManifest(loop={"count": 30}, parts=parts)
    dataset = await results.stage_dataset(DatasetName(**COORDINATES), manifest)

    tool = DuckdbTool(given)
    query = "SELECT count(*) AS rows, sum(id)::BIGINT AS total FROM loaded"
    try:
        asked = call("duckdb", {"query": query, "tables": {"loaded": dataset.uri}})
        value = (await tool.run(asked)).value
        assert value["rows"] == [{"rows": 30, "total": sum(range(30))}]
        lost = dataset.uri.replace("/load@", "/lost@")
        with pytest.raises(ToolFailed, match="lost"):
            await tool.run(call("duckdb", {"query": query, "tables": {"loaded": lost}}))
    finally:
        await tool.close()
