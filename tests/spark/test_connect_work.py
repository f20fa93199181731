"""A playbook's own jobs on a Spark Connect server: results by name, and jobs of lost drivers."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest

from noetl.kernel.errors import SparkDriverLost
from noetl.servers.java import Java
from noetl.servers.spark_cluster import SparkConnectServer
from noetl.spark.driver import SparkDriver
from noetl.spark.job_runner import SparkJobRunner
from noetl.spark.session import SparkSettings
from tests.spark.datasets import DatasetScene, ok, order
from tests.spark.driving import driver_on
from tests.spark.test_work import WAITING, until_there

pytestmark = pytest.mark.cluster


def client_of(server: SparkConnectServer, java: Java) -> SparkDriver:
    return driver_on(java, SparkSettings(master=server.url))


async def test_datasets_are_read_and_written_by_name(
    connect_server: SparkConnectServer, java: Java, tmp_path: Path
) -> None:
    scene = DatasetScene(tmp_path)
    uri = await scene.dataset([ok(index, {"id": index}) for index in range(100)])
    async with client_of(connect_server, java) as driver:
        runner = SparkJobRunner(driver, scene.objects, scene.place)
        query = "SELECT id, repeat('x', 1000) AS text FROM given ORDER BY id"
        stored = (await runner.run(order("wide", query=query, datasets={"given": uri}))).reference
        assert stored is not None
        again = order("sum", query="SELECT sum(id) AS s FROM wide", datasets={"wide": stored.uri})
        assert (await runner.run(again)).value == [{"s": sum(range(100))}]


def until_gone(task: int) -> None:
    """Spark ends the process of an interrupted task after a moment of its own."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(task)
        if process.status() != psutil.STATUS_ZOMBIE:
            process.wait(timeout=60)


async def test_the_job_of_a_lost_driver_is_interrupted_before_it_runs_again(
    connect_server: SparkConnectServer, java: Java, tmp_path: Path
) -> None:
    scene = DatasetScene(tmp_path)
    asked = order("lost", code=WAITING, arguments={"where": str(tmp_path)}, is_repeatable=False)
    async with client_of(connect_server, java) as driver:
        waiting = asyncio.create_task(SparkJobRunner(driver, scene.objects, scene.place).run(asked))
        await asyncio.to_thread(until_there, tmp_path / "running")
        task = int(await asyncio.to_thread((tmp_path / "running").read_text))
        assert psutil.pid_exists(task)
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        with pytest.raises(SparkDriverLost):
            await waiting
    (tmp_path / "running").unlink()
    async with client_of(connect_server, java) as driver:
        later = order("lost", claim=2, code=WAITING, arguments={"where": str(tmp_path)})
        waiting = asyncio.create_task(SparkJobRunner(driver, scene.objects, scene.place).run(later))
        await asyncio.to_thread(until_there, tmp_path / "running")
        await asyncio.to_thread(until_gone, task)
        (tmp_path / "go").touch()
        assert (await waiting).value == [{"id": each} for each in range(4)]
