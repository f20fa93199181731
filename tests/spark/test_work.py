"""A playbook's own jobs: what they give, how they end, and that none of them outlives its owner."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from noetl.domain.naming.result_name import parse_result_name
from noetl.kernel.errors import SparkDriverLost, SparkJobFailed
from noetl.kernel.scope import Scope
from noetl.ports.spark_jobs import SparkInput, SparkWrite
from noetl.spark.driver import START_SECONDS_MAX, SparkDriver
from noetl.spark.job_runner import SparkJobRunner, tag_of
from noetl.spark.worker_daemon import FOR_SLOTS
from tests.spark.datasets import DatasetScene, ok, order
from tests.spark.driving import WAIT_SECONDS_MAX, driver_on, job, system_java

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]

SCOPE = Scope("default", "default")
WAITING = """
import os, pathlib, time

def main(spark, where):
    def wait(rows):
        mine = pathlib.Path(where) / str(os.getpid())
        mine.write_text(str(os.getpid()))
        mine.rename(pathlib.Path(where) / "running")
        while not (pathlib.Path(where) / "go").exists():
            time.sleep(0.05)
        yield from rows

    return spark.range(4).mapInArrow(wait, "id bigint")
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SparkDriver]:
    java = system_java(tmp_path_factory.mktemp("java"))
    async with driver_on(java) as running:
        yield running


@pytest.fixture
def scene(tmp_path: Path) -> DatasetScene:
    return DatasetScene(tmp_path)


@pytest.fixture
def runner(driver: SparkDriver, scene: DatasetScene) -> SparkJobRunner:
    return SparkJobRunner(driver, scene.objects, scene.place)


def until_there(path: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX + WAIT_SECONDS_MAX
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.05)


async def test_small_results_are_rows_of_plain_data(runner: SparkJobRunner) -> None:
    query = """
        SELECT d.n, CAST(d.n AS DECIMAL(10, 2)) AS price, DATE '2026-01-02' AS day,
               TIMESTAMP_NTZ '2026-01-02 03:04:05' AS at, map('k', d.n) AS more, array(1, 2) AS list
        FROM given AS d ORDER BY d.n
    """
    rows = SparkInput(name="given", rows=[{"n": 2}, {"n": 1}])
    [first, _] = (await runner.run(order("small", query=query, inputs=[rows]))).value
    assert first == {
        "n": 1,
        "price": 1.0,
        "day": "2026-01-02",
        "at": "2026-01-02T03:04:05",
        "more": {"k": 1},
        "list": [1, 2],
    }


async def test_large_results_are_stored_by_the_tasks_and_read_by_name(
    runner: SparkJobRunner, scene: DatasetScene
) -> None:
    frames = [
        [ok(index, {"id": index, "text": "x" * 100}) for index in range(low, low + 3_000)]
        for low in range(0, 9_000, 3_000)
    ]
    uri = await scene.dataset(*frames)
    query = "SELECT id, text FROM given WHERE id % 2 = 0 ORDER BY id"
    answer = await runner.run(order("large", query=query, datasets={"given": uri}))

    reference = answer.reference
    assert reference is not None
    assert reference.row_count == 4_500
    content = await scene.results.content(SCOPE, reference.uri, reference)
    assert content == {
        "value": [frames[each // 3_000][each % 3_000]["value"] for each in range(0, 9_000, 2)]
    }

    again = order(
        "again", query="SELECT sum(id) AS s FROM given", datasets={"given": reference.uri}
    )
    assert (await runner.run(again)).value == [{"s": sum(range(0, 9_000, 2))}]


async def test_a_function_gets_frames_and_values_and_gives_a_frame_a_table_or_data(
    runner: SparkJobRunner, scene: DatasetScene
) -> None:
    uri = await scene.dataset([ok(index, {"id": index}) for index in range(10)])
    code = """
def main(spark, given, least):
    return given.where(given.id >= least).selectExpr("sum(id) AS s").toArrow()

def plain(spark, given, least):
    return {"count": given.count(), "least": least}

def wrong(spark, given, least):
    return object()
"""
    datasets, given = {"given": uri}, {"least": 8}
    frame = await runner.run(order("table", code=code, datasets=datasets, arguments=given))
    assert frame.value == [{"s": 17}]
    asked = order("plain", code=code, function="plain", datasets=datasets, arguments=given)
    assert (await runner.run(asked)).value == {"count": 10, "least": 8}
    with pytest.raises(SparkJobFailed, match="object"):
        await runner.run(
            order("x", code=code, function="wrong", datasets=datasets, arguments=given)
        )


async def test_rows_are_written_where_the_task_says(runner: SparkJobRunner, tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    write = SparkWrite(format="parquet", path=path, mode="overwrite")
    query = "SELECT id, id * 2 AS twice FROM range(5)"
    answer = await runner.run(order("write", query=query, write=write))
    assert answer.value == {"path": path, "format": "parquet", "mode": "overwrite", "rows": 5}

    files = SparkInput(name="files", format="parquet", path=path)
    read = order("read", query="SELECT sum(twice) AS s FROM files", inputs=[files])
    assert (await runner.run(read)).value == [{"s": 20}]


async def test_a_job_that_cannot_be_done_says_why(runner: SparkJobRunner) -> None:
    with pytest.raises(SparkJobFailed, match="nowhere") as caught:
        await runner.run(order("sql", query="SELECT * FROM nowhere"))
    assert caught.value.exception == "AnalysisException"
    with pytest.raises(SparkJobFailed, match="not today"):
        await runner.run(order("raises", code="def main(spark):\n  raise ValueError('not today')"))
    with pytest.raises(SparkJobFailed, match="finite"):
        await runner.run(order("nan", query="SELECT CAST('NaN' AS DOUBLE) AS n"))


async def test_what_marks_the_workers_of_slots_is_seen_by_no_function(
    runner: SparkJobRunner, driver: SparkDriver, tmp_path: Path
) -> None:
    """A function with it would run its code where slots leave what they hold."""
    code = """
import pathlib

def main(spark, where):
    seen = set()
    (pathlib.Path(where) / "running").touch()
    while not (pathlib.Path(where) / "go").exists():
        seen.update(list(spark.sparkContext.environment))
    return sorted(seen)
"""
    looking = asyncio.create_task(
        runner.run(order("looks", code=code, arguments={"where": str(tmp_path)}))
    )
    await asyncio.to_thread(until_there, tmp_path / "running")
    slots = await (await driver.submit(job("beside", "surroundings"))).wait()
    (tmp_path / "go").touch()
    seen = (await looking).value
    assert "PYTHONHASHSEED" in seen
    assert FOR_SLOTS not in seen
    for slot in slots:
        assert FOR_SLOTS in msgspec.json.decode(slot.summary)["environment"]


async def test_who_stops_waiting_has_cancelled_the_job(
    runner: SparkJobRunner, driver: SparkDriver, tmp_path: Path
) -> None:
    asked = order("unwanted", code=WAITING, arguments={"where": str(tmp_path)})
    waiting = asyncio.create_task(runner.run(asked))
    await asyncio.to_thread(until_there, tmp_path / "running")
    assert await driver.running_tags() == (tag_of(asked.cycle),)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await driver.running_tags() == ()


async def test_code_that_only_computes_is_stopped_too(
    runner: SparkJobRunner, driver: SparkDriver, tmp_path: Path
) -> None:
    code = """
def main(spark, where):
    open(where + "/running", "w").close()
    while True:
        try:
            sum(range(1000))
        except Exception:
            pass
"""
    asked = order("busy", code=code, arguments={"where": str(tmp_path)})
    waiting = asyncio.create_task(runner.run(asked))
    await asyncio.to_thread(until_there, tmp_path / "running")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await driver.running_tags() == ()


async def test_what_an_earlier_holder_stored_is_taken_over(
    runner: SparkJobRunner, scene: DatasetScene
) -> None:
    query = "SELECT id, repeat('x', 100) AS text FROM range(3000)"
    stored = (await runner.run(order("held", query=query))).reference
    assert stored is not None
    later = await runner.run(order("held", claim=3, query="SELECT never FROM nowhere"))
    assert later.reference == stored
    name = parse_result_name(stored.uri)
    assert name.attempt == 1
    content = await scene.results.content(SCOPE, stored.uri)
    assert len(content["value"]) == 3_000


async def test_a_retry_whose_driver_was_killed_does_not_give_what_the_try_before_it_stored(
    runner: SparkJobRunner, driver: SparkDriver, scene: DatasetScene, tmp_path: Path
) -> None:
    query = "SELECT id, repeat('x', 100) AS text FROM range(3000)"
    first = (await runner.run(order("retried", query=query))).reference
    assert first is not None

    code = WAITING.replace("range(4)", "range(40000)")
    asked = order("retried", attempt=2, code=code, arguments={"where": str(tmp_path)})
    waiting = asyncio.create_task(runner.run(asked))
    await asyncio.to_thread(until_there, tmp_path / "running")
    assert driver.pid is not None
    os.kill(driver.pid, signal.SIGKILL)
    (tmp_path / "go").touch()
    second = (await waiting).reference
    assert second is not None
    assert second.uri != first.uri
    assert second.row_count == 40_000


async def test_a_job_whose_driver_was_killed_runs_again_and_has_one_result(
    runner: SparkJobRunner, driver: SparkDriver, scene: DatasetScene, tmp_path: Path
) -> None:
    code = WAITING.replace(
        'spark.range(4).mapInArrow(wait, "id bigint")',
        'spark.range(4).mapInArrow(wait, "id bigint").selectExpr('
        '"explode(sequence(id * 1000, id * 1000 + 999)) AS n", "repeat(\'x\', 100) AS text")',
    )
    asked = order("killed", code=code, arguments={"where": str(tmp_path)})
    waiting = asyncio.create_task(runner.run(asked))
    await asyncio.to_thread(until_there, tmp_path / "running")
    assert driver.pid is not None
    os.kill(driver.pid, signal.SIGKILL)
    (tmp_path / "go").touch()
    answer = await waiting
    assert answer.reference is not None
    content = await scene.results.content(SCOPE, answer.reference.uri)
    assert [row["n"] for row in content["value"]] == list(range(4_000))
    manifests = [path for path in (tmp_path / "payloads").rglob("*.json") if "killed" in str(path)]
    assert len(manifests) == 1

    doubtful = order("doubt", code=WAITING, arguments={"where": str(tmp_path)}, is_repeatable=False)
    (tmp_path / "go").unlink()
    (tmp_path / "running").unlink()
    waiting = asyncio.create_task(runner.run(doubtful))
    await asyncio.to_thread(until_there, tmp_path / "running")
    os.kill(driver.pid, signal.SIGKILL)
    with pytest.raises(SparkDriverLost):
        await waiting
