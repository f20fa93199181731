"""Slots on a Spark Connect server, which outlives the drivers that come and go."""

import asyncio
import os
import signal
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

import noetl
from noetl.bootstrap.engine import Engine
from noetl.kernel.errors import (
    SparkDriverLost,
    SparkJobCancelled,
    SparkJobFailed,
    SparkStartFailed,
)
from noetl.servers.java import Java
from noetl.servers.spark_cluster import SparkConnectServer
from noetl.spark.driver import SparkDriver
from noetl.spark.session import SparkSettings
from tests.servers.processes import family_of, survivors
from tests.spark.driving import FUNCTIONS, driver_on, job, wait_for_slots
from tests.stages.far_engine import far_engine
from tests.stages.half_done import begun, settled
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import leases_again
from tests.stages.stage_suite import SparkStageSuite

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]


def client_of(server: SparkConnectServer, java: Java, *more: Path) -> SparkDriver:
    files = (str(FUNCTIONS), *map(str, more))
    return driver_on(java, SparkSettings(master=server.url, py_files=files))


@pytest_asyncio.fixture(scope="class", loop_scope="module")
async def engine(
    connect_server: SparkConnectServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Engine]:
    home = tmp_path_factory.mktemp("stages") / "home"
    async with far_engine(home, connect_server.url) as engine:
        yield engine


class TestStages(SparkStageSuite):
    """Before the other tests: one of them restarts the server."""

    @pytest.fixture
    def spark_page(self, connect_server: SparkConnectServer) -> str | None:
        return connect_server.page

    async def test_a_stage_goes_on_when_a_slot_and_then_the_driver_is_killed(
        self, engine: Engine, connect_server: SparkConnectServer
    ) -> None:
        def leaders() -> list[psutil.Process]:
            return [psutil.Process(connect_server.pid)]

        with HeldCounters() as counters:
            stage = await begun(engine, counters, leaders=leaders)
            victim = stage.slots[0]
            in_doubt = stage.in_flight[victim.pid]
            counters.pace_seconds = 0.1  # so that the stage is not over too soon
            victim.kill()
            counters.let_go()
            await stage.until(lambda events: leases_again(events) == 1)

            counters.hold()
            await settled(counters)
            stage.look()
            in_doubt |= set().union(*stage.in_flight.values())
            stage.driver.kill()
            # The session and its job live on in the server, until the next driver ends the job.
            assert await asyncio.to_thread(survivors, stage.slots) == []
            counters.let_go()
            counters.pace_seconds = 0.0
            await stage.end_well(in_doubt, slots_lost=1 + len(stage.slots))


async def test_slots_run_with_the_code_that_was_shipped(
    connect_server: SparkConnectServer, java: Java
) -> None:
    async with client_of(connect_server, java) as driver:
        said = await (await driver.submit(job("shipped", "surroundings"))).wait()
        places = [Path(msgspec.json.decode(each.summary)["noetl"]) for each in said]
        assert {place.parents[1].name.split("-")[0] for place in places} == {"noetl"}
        assert all(".zip" not in str(place) for place in places), "code that is run is in files"
        assert Path(noetl.__file__) not in places

        again = await (await driver.submit(job("again", "fail_once"))).wait()
        assert [each.incarnation for each in again] == [1, 1]


async def test_jobs_are_cancelled_also_those_of_a_driver_that_was_killed(
    connect_server: SparkConnectServer, java: Java, tmp_path: Path
) -> None:
    where = str(tmp_path).encode()
    async with client_of(connect_server, java) as driver:
        ours = await driver.submit(job("ours", "wait_for_file", slots=1, argument=where))
        held = await driver.submit(job("held", "wait_for_file", slots=1, argument=where))
        workers = await asyncio.to_thread(wait_for_slots, tmp_path, "held", 1)
        await asyncio.to_thread(wait_for_slots, tmp_path, "ours", 1)

        await driver.cancel("ours")
        with pytest.raises(SparkJobCancelled):
            await ours.wait()

        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        with pytest.raises(SparkDriverLost):
            await held.wait()
        slot = [each for each in family_of(connect_server.pid) if each.pid == workers[0]]
        assert len(slot) == 1

        await driver.cancel("held", session_id=held.session_id)
        assert await asyncio.to_thread(survivors, slot) == []
        assert (await driver.session()).session_id != held.session_id


async def test_a_slot_refuses_other_code_than_the_driver_has(
    connect_server: SparkConnectServer, java: Java, tmp_path: Path
) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("noetl/__init__.py", '__version__ = "9.9.9"\n')
    async with client_of(connect_server, java, other) as driver:
        handle = await driver.submit(job("other", "echo", slots=1))
        with pytest.raises(SparkJobFailed, match=r"has noetl 9\.9\.9 where the driver has"):
            await handle.wait()


async def test_who_does_not_know_the_token_is_refused(
    connect_server: SparkConnectServer, java: Java
) -> None:
    settings = SparkSettings(master=connect_server.url.replace("token=", "token=guessed"))
    async with driver_on(java, settings) as driver:
        with pytest.raises(SparkStartFailed, match="authentication"):
            await driver.session()


async def test_a_server_that_came_back_gets_a_new_session(
    connect_server: SparkConnectServer, java: Java
) -> None:
    async with client_of(connect_server, java) as driver:
        await (await driver.submit(job("before", "echo", slots=1))).wait()
        connect_server.kill()
        connect_server.start()
        lost = await driver.submit(job("lost", "echo", slots=1))
        with pytest.raises(SparkDriverLost):
            await lost.wait()
        assert len(await (await driver.submit(job("after", "echo", slots=1))).wait()) == 1
