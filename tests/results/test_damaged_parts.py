"""A byte of a frame is wrong: nobody who reads the rows gets them, by whatever way."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.kernel.errors import PayloadCorrupt
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.tool import ToolFailed
from noetl.results.counts import TIER
from noetl.results.dataset import DatasetManifest, DatasetPart, frame_content
from noetl.results.dataset_tables import DatasetTables
from noetl.results.places import Place, Places
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from noetl.results.tiers import media_type_of
from noetl.templates.table_rows import TableRows
from noetl.tools.duckdb import DuckdbTool
from tests.spark.datasets import DatasetScene
from tests.tools.calls import call, services

COORDINATES: dict[str, Any] = {
    "tenant": DEFAULT_SCOPE.tenant_id,
    "project": DEFAULT_SCOPE.organization_id,
    "execution_id": ExecutionId("655648128737706002"),
    "step": StepName("load"),
}
ROWS = 100
TEXT = "a text that is somewhere in the file"
QUERY = "SELECT count(*) AS rows FROM given"


class Scene(DatasetScene):
    """Two datasets of two parts each: a loop's, and a table's. The second part is an object."""

    async def stored(self) -> None:
        rows = [{"id": index, "text": f"{TEXT} {index}"} for index in range(ROWS)]
        outcomes = [{"index": row["id"], "status": "ok", "value": row} for row in rows]
        self.frame = await self._part("frames", frame_content(outcomes))
        self.share = await self._part("shares", {"rows": rows})
        looped = [DatasetPart(first=ROWS, rows=ROWS, reference=self.frame)]
        self.loop = await self.results.stage_dataset(
            DatasetName(**COORDINATES), DatasetManifest(loop={"count": ROWS}, parts=looped)
        )
        parts = [
            DatasetPart(first=0, rows=1, outcomes=[{"id": -1, "text": "inline"}]),
            DatasetPart(first=1, rows=ROWS, reference=self.share),
        ]
        self.table = await self.results.stage_dataset(
            ResultName(**COORDINATES), DatasetManifest(loop={}, parts=parts)
        )

    async def _part(self, task: str, content: dict[str, Any]) -> ResultReference:
        name = ResultName(**COORDINATES, task=task)
        return await self.results.stage_rows(name, content)

    def damage(self, reference: ResultReference) -> None:
        """One letter of one value: every reader of Arrow would take it."""
        key = self.results.key_of(parse_results(reference.uri), media_type_of(reference))
        path = self.objects.local_path(key)
        assert path is not None
        data = path.read_bytes()
        before, after = TEXT.encode(), TEXT.replace("text", "test").encode()
        if before not in data:
            before, after = b"inline", b"online"
        assert before in data
        path.chmod(0o600)
        path.write_bytes(data.replace(before, after, 1))


@pytest_asyncio.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path)
    await scene.stored()
    yield scene
    await scene.objects.close()


async def rows_lazily(results: ResultStore, reference: ResultReference) -> TableRows:
    content = await results.content(DEFAULT_SCOPE, reference.uri, reference, lazily=True)
    rows = content["value"]
    assert isinstance(rows, TableRows)
    return rows


async def test_a_table_of_arrow_refuses_them(scene: Scene) -> None:
    tables = DatasetTables(scene.results.reads)
    assert (await tables.table(scene.loop.uri)).num_rows == ROWS
    scene.damage(scene.frame)
    with pytest.raises(PayloadCorrupt):
        await tables.table(scene.loop.uri)
    assert scene.results.counts.resolved[TIER, "corrupt"] == 1


async def test_a_damaged_manifest_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    scene.damage(scene.table)
    with pytest.raises(PayloadCorrupt):
        await scene.results.local_file(DEFAULT_SCOPE, scene.table, tmp_path)


async def test_one_file_for_a_program_refuses_them(scene: Scene, tmp_path: Path) -> None:
    for whole, part in ((scene.loop, scene.frame), (scene.table, scene.share)):
        assert (await scene.results.local_file(DEFAULT_SCOPE, whole, tmp_path)).exists()
        scene.damage(part)
        with pytest.raises(PayloadCorrupt):
            await scene.results.local_file(DEFAULT_SCOPE, whole, tmp_path)


async def test_rows_that_are_decoded_where_somebody_looks_refuse_them(scene: Scene) -> None:
    rows = await rows_lazily(scene.results, scene.table)
    assert rows[-1]["id"] == ROWS - 1
    scene.damage(scene.share)
    again = await rows_lazily(scene.results, scene.table)
    assert again[0] == {"id": -1, "text": "inline"}
    with pytest.raises(PayloadCorrupt):
        again[1]


async def test_a_replica_has_what_the_primary_has_let_spoil(scene: Scene, tmp_path: Path) -> None:
    other = Scene(tmp_path / "other")
    await other.stored()
    scene.damage(scene.share)
    scene.damage(scene.frame)
    places = [Place("one", scene.objects), Place("two", other.objects, is_replica=True)]
    chain = ReadChain([], Places(places, lambda: 0.0), tmp_path / "scratch")
    placement = scene.place.placement
    results = ResultStore(scene.objects, scene.results.payloads, placement, chain)

    table = await DatasetTables(results.reads).table(scene.loop.uri)
    assert table.column("text")[0].as_py() == f"{TEXT} 0"
    assert (await rows_lazily(results, scene.table))[1] == {"id": 0, "text": f"{TEXT} 0"}
    assert chain.places.failures["one"] == 2
    await other.objects.close()


async def test_duckdb_says_what_is_wrong(scene: Scene, tmp_path: Path) -> None:
    tool = DuckdbTool(msgspec.structs.replace(services(tmp_path), results=scene.results))
    asked = call("duckdb", {"query": QUERY, "tables": {"given": scene.loop.uri}})
    try:
        assert (await tool.run(asked)).value["rows"] == [{"rows": ROWS}]
        scene.damage(scene.frame)
        with pytest.raises(ToolFailed) as caught:
            await tool.run(asked)
    finally:
        await tool.close()
    failure = caught.value.failure
    assert (failure.kind, failure.code) == ("missing_reference", "payload_corrupt")
