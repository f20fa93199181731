"""A job that cannot be stopped: its driver ends with it within a limit, and another follows."""

import asyncio
import time
from pathlib import Path

import pytest

from noetl.spark.driver import START_SECONDS_MAX, SparkDriver
from noetl.spark.job_runner import SparkJobRunner
from noetl.spark.session import SparkSettings
from tests.servers.processes import family_of, survivors
from tests.spark.datasets import DatasetScene, order
from tests.spark.driving import ENVIRONMENT, MEMORY_MB, system_java

pytestmark = pytest.mark.servers

DEAF = """
import time

def main(spark, where):
    open(where + "/running", "w").close()
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            pass
"""


def until_there(path: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def test_a_job_that_does_not_stop_in_time_takes_its_driver_along(tmp_path: Path) -> None:
    scene = DatasetScene(tmp_path)
    java = system_java(tmp_path / "java")
    settings = SparkSettings(master="local[2,4]", memory_mb=MEMORY_MB)
    async with SparkDriver(
        settings, find_java=lambda: java, environment=ENVIRONMENT, stop_seconds_max=1.0
    ) as driver:
        runner = SparkJobRunner(driver, scene.objects, scene.place)
        asked = order("deaf", code=DEAF, arguments={"where": str(tmp_path)})
        waiting = asyncio.create_task(runner.run(asked))
        await asyncio.to_thread(until_there, tmp_path / "running")
        assert driver.pid is not None
        family = family_of(driver.pid)

        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert not driver.is_up
        assert await asyncio.to_thread(survivors, family) == []
        answer = await runner.run(order("after", query="SELECT 1 AS one"))
        assert answer.value == [{"one": 1}]
