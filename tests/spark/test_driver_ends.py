"""However a driver ends, nothing of it is left; and the next job has another."""

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import psutil
import pytest

from noetl.kernel.errors import SparkDriverLost, SparkStartFailed
from noetl.spark.session import SparkSettings
from tests.servers.processes import family_of, parent_of, survivors
from tests.spark.driving import driver_on, job, wait_for_slots, wheel_java

pytestmark = [pytest.mark.servers, pytest.mark.crash]

SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from tests.spark.driving import driver_on, job, wait_for_slots, wheel_java

async def main(folder):
    driver = driver_on(wheel_java(folder))
    await driver.submit(job("held", "wait_for_file", argument=str(folder).encode()))
    await asyncio.to_thread(wait_for_slots, folder, "held", 2)
    print(driver.pid, flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(Path(sys.argv[1])))
"""


def driver_folders() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("noetl-spark-")}


def programs(family: list[psutil.Process]) -> list[str]:
    return [process.name() for process in family]


def test_a_killed_supervisor_takes_all_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    before = driver_folders()
    with parent_of(SUPERVISOR, tmp_path) as (parent, [pid]):
        family = family_of(pid)
        assert "java" in programs(family)
        assert len(family) > 4  # driver, JVM, the parent of workers, two workers
        parent.kill()

    assert survivors(family) == []
    assert driver_folders() <= before


async def test_a_killed_driver_is_noticed_and_replaced(tmp_path: Path) -> None:
    async with driver_on(wheel_java(tmp_path / "java")) as driver:
        held = await driver.submit(job("held", "wait_for_file", argument=str(tmp_path).encode()))
        await asyncio.to_thread(wait_for_slots, tmp_path, "held", 2)
        assert driver.pid is not None
        family = family_of(driver.pid)
        os.kill(driver.pid, signal.SIGKILL)

        with pytest.raises(SparkDriverLost):
            await held.wait()
        assert await asyncio.to_thread(survivors, family) == []
        assert not driver.is_up

        [summary] = await (await driver.submit(job("again", "echo", slots=1))).wait()
        assert summary.incarnation == 0
        second = family_of(driver.pid)

        [jvm] = [process for process in second if process.name() == "java"]
        jvm.kill()
        assert await asyncio.to_thread(survivors, second) == []


async def test_what_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    before = driver_folders()
    wrong = SparkSettings(master="local[none]")
    async with driver_on(wheel_java(tmp_path), wrong) as driver:
        with pytest.raises(SparkStartFailed, match="local\\[none\\]"):
            await driver.session()
        assert not driver.is_up
    assert driver_folders() <= before
