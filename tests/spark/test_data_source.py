"""`spark.read.format("noetl.results")`: datasets of loops and single results, by name."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from noetl.kernel.errors import SparkJobFailed
from noetl.kernel.ids import StepName
from noetl.ports.spark_jobs import SparkInput
from noetl.spark.driver import SparkDriver
from noetl.spark.job_runner import SparkJobRunner
from tests.spark.datasets import DatasetScene, failed, ok, order, result_name
from tests.spark.driving import driver_on, system_java

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SparkDriver]:
    java = system_java(tmp_path_factory.mktemp("java"))
    async with driver_on(java) as running:
        yield running


@pytest.fixture
def scene(tmp_path: Path) -> DatasetScene:
    return DatasetScene(tmp_path)


async def rows_of(driver: SparkDriver, scene: DatasetScene, uri: str, **options: str) -> Any:
    """What Spark sees, as the job's value."""
    given = SparkInput(name="given", result=uri, options=options)
    asked = order("read", query="SELECT * FROM given", inputs=[given])
    return (await SparkJobRunner(driver, scene.objects, scene.place).run(asked)).value


async def test_a_dataset_has_a_column_for_each_field_of_its_values(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    frames = [
        [ok(index, {"id": index, "name": f"n{index}"}) for index in range(low, low + 3)]
        for low in (0, 3)
    ]
    expected = [{"id": index, "name": f"n{index}"} for index in range(6)]

    assert await rows_of(driver, scene, await scene.dataset(*frames)) == expected
    inside = await scene.dataset(*frames, inline=True, step="inside")
    assert await rows_of(driver, scene, inside) == expected
    assert await rows_of(driver, scene, inside, columns="id") == [{"id": each} for each in range(6)]


async def test_rows_that_failed_are_there_when_they_are_asked_for(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    uri = await scene.dataset([ok(0, {"id": 1}), failed(1, "broken"), ok(2, {"id": 3})])

    assert await rows_of(driver, scene, uri) == [{"id": 1}, {"id": 3}]
    every = await rows_of(driver, scene, uri, rows="all")
    assert [(row["_index"], row["_status"], row["id"]) for row in every] == [
        (0, "ok", 1),
        (1, "failed", None),
        (2, "ok", 3),
    ]
    assert every[1]["_error"] == '{"kind":"unknown","message":"broken"}'


async def test_types_that_differ_between_frames_become_one(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    uri = await scene.dataset(
        [ok(0, {"n": 1, "more": None, "tags": ["a"]})],
        [ok(1, {"n": 1.5, "more": "x", "tags": []})],
        [ok(2, {"n": None, "more": {"deep": True}, "tags": None, "last": 1})],
    )
    assert await rows_of(driver, scene, uri) == [
        {"n": 1.0, "more": None, "tags": ["a"], "last": None},
        {"n": 1.5, "more": '"x"', "tags": [], "last": None},
        {"n": None, "more": '{"deep":true}', "tags": None, "last": 1},
    ]


async def test_values_that_are_no_objects_are_one_column(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    numbers = await scene.dataset([ok(0, 5), ok(1, 7)], step="numbers")
    assert await rows_of(driver, scene, numbers) == [{"value": 5}, {"value": 7}]

    mixed = await scene.dataset([ok(0, {"a": 1}), ok(1, {"b": [1]})], step="mixed")
    assert await rows_of(driver, scene, mixed) == [{"value": '{"a":1}'}, {"value": '{"b":[1]}'}]
    parsed = await rows_of(driver, scene, mixed, json="columns")
    assert parsed == [{"a": 1, "b": None}, {"a": None, "b": [1]}]


async def test_single_results_are_tables_too(driver: SparkDriver, scene: DatasetScene) -> None:
    table = [{"id": index, "name": "x" * 50} for index in range(1_000)]
    feather = await scene.single(table, "feather")
    assert await rows_of(driver, scene, feather, columns="id") == [
        {"id": index} for index in range(1_000)
    ]
    assert await rows_of(driver, scene, await scene.single({"a": 1}, "one")) == [{"a": 1}]


async def test_a_name_with_nothing_behind_it_says_so(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    uri = (await scene.dataset([ok(0, 1)])).replace("/load@", "/lost@")
    with pytest.raises(SparkJobFailed, match="lost@1"):
        await rows_of(driver, scene, uri)


async def test_a_session_of_ones_own_reads_them_after_one_call(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    uri = await scene.dataset([ok(index, {"id": index}) for index in range(4)])
    code = f"""
from noetl.spark import register

def main(spark):
    mine = spark.newSession()
    register(mine, home={str(scene.home)!r})
    return mine.read.format("noetl.results").load({uri!r}).where("id > 1").count()
"""
    runner = SparkJobRunner(driver, scene.objects, scene.place)
    assert (await runner.run(order("hand", code=code))).value == 2


async def test_a_task_refuses_bytes_that_are_not_the_ones_its_manifest_has(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    frames = [[ok(index, {"word": f"{word} {index}"}) for index in range(9)] for word in "ab"]
    uri = await scene.dataset(*frames)
    (path,) = (scene.home / "payloads").rglob("load/1/0/1.feather")
    data = path.read_bytes()
    assert b"b 7" in data
    path.chmod(0o600)
    path.write_bytes(data.replace(b"b 7", b"c 7"))
    with pytest.raises(SparkJobFailed, match="should hash to"):
        await rows_of(driver, scene, uri)


async def test_a_reference_proves_the_bytes_of_a_single_result(
    driver: SparkDriver, scene: DatasetScene
) -> None:
    table = [{"id": index, "name": "x" * 50} for index in range(1_000)]
    result = await scene.results.record(result_name(StepName("proven")), table, inline_bytes_max=0)
    reference = result.reference
    assert reference is not None
    told = msgspec.json.encode(reference).decode()
    rows = await rows_of(driver, scene, reference.uri, columns="id", reference=told)
    assert len(rows) == 1_000
    (path,) = (scene.home / "payloads").rglob("*.feather")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"xxxx", b"xxxy", 1))
    with pytest.raises(SparkJobFailed, match="should hash to"):
        await rows_of(driver, scene, reference.uri, columns="id", reference=told)
