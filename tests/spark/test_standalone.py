"""Slots on a standalone cluster: a master, two workers, and executors below them."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

import noetl
from noetl.bootstrap.engine import Engine
from noetl.kernel.errors import SparkJobCancelled
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.servers.spark_cluster import SparkCluster
from noetl.spark.driver import SparkDriver
from noetl.spark.session import SparkSettings
from tests.servers.processes import family_of, survivors
from tests.spark.driving import (
    FUNCTIONS,
    MEMORY_MB,
    driver_on,
    job,
    listening_addresses,
    system_java,
    wait_for_slots,
)
from tests.stages.bucket_stage import check_bucket, url_of_bucket
from tests.stages.far_engine import far_engine
from tests.stages.half_done import begun, settled
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import leases_again
from tests.stages.slot_processes import executor_of, executors
from tests.stages.stage_suite import SparkStageSuite

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with SparkCluster(folder, system_java(folder / "java")) as running:
        servers = [running.master, *running.workers]
        yield running
        family = [process for server in servers for process in family_of(server.pid)]
    assert survivors(family) == []
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    assert left == {"spark-master.log", "spark-worker.log"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(
    cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SparkDriver]:
    settings = SparkSettings(
        master=cluster.url,
        memory_mb=MEMORY_MB,
        conf=cluster.settings,
        py_files=(str(FUNCTIONS),),
    )
    java = system_java(tmp_path_factory.mktemp("java"))
    async with driver_on(java, settings) as running:
        yield running


async def test_slots_on_a_cluster_reach_a_bucket_and_show_its_keys_to_nobody(
    cluster: SparkCluster, tmp_path: Path, s3_server: SeaweedS3Server, s3_bucket: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        url = url_of_bucket(s3_server, s3_bucket, patch)
        where = (tmp_path / "home", cluster.url, cluster.settings)
        async with far_engine(*where, payload_url=url) as engine:
            await check_bucket(engine, s3_server.secret_key)


@pytest_asyncio.fixture(scope="class", loop_scope="module")
async def engine(
    cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Engine]:
    home = tmp_path_factory.mktemp("stages") / "home"
    async with far_engine(home, cluster.url, cluster.settings) as engine:
        yield engine


class TestStages(SparkStageSuite):
    """Before the other tests: their session keeps the processors of the cluster."""

    async def test_an_executor_and_then_a_worker_of_the_cluster_are_killed(
        self, engine: Engine, cluster: SparkCluster
    ) -> None:
        with HeldCounters() as counters:
            stage = await begun(engine, counters, leaders=lambda: executors(cluster))
            victim = stage.slots[0]
            in_doubt = stage.in_flight[victim.pid]
            counters.pace_seconds = 0.1  # so that the stage is not over too soon
            executor_of(cluster, victim).kill()
            assert await asyncio.to_thread(survivors, [victim]) == []
            counters.let_go()
            await stage.until(lambda events: leases_again(events) == 1)

            counters.hold()
            await settled(counters)
            stage.look()
            worker = cluster.workers[0]
            lost = [each for each in stage.slots if each in family_of(worker.pid)]
            in_doubt |= set().union(*(stage.in_flight[each.pid] for each in lost))
            worker.kill()
            assert await asyncio.to_thread(survivors, lost) == []
            counters.let_go()
            await asyncio.to_thread(worker.start)
            counters.pace_seconds = 0.0
            await stage.end_well(in_doubt, slots_lost=1 + len(lost))


async def test_slots_run_on_executors_with_the_code_that_was_shipped(
    driver: SparkDriver, cluster: SparkCluster
) -> None:
    handle = await driver.submit(job("shipped", "surroundings"))
    said = [msgspec.json.decode(each.summary) for each in await handle.wait()]
    assert {Path(each["noetl"]).parents[1].name.split("-")[0] for each in said} == {"noetl"}
    assert all(".zip" not in each["noetl"] for each in said), "code that is run is in files"
    assert noetl.__file__ not in {each["noetl"] for each in said}
    assert len(executors(cluster)) == 2
    for server in (cluster.master, *cluster.workers):
        found = {each.removeprefix("::ffff:") for each in listening_addresses(server.pid)}
        assert found == {"127.0.0.1"}


async def test_what_a_worker_has_loaded_stays_for_the_jobs_that_follow(
    driver: SparkDriver,
) -> None:
    """A slot leaves open stores and sessions there."""
    jobs: list[set[tuple[int, ...]]] = []
    for tag in ("one", "two", "three"):
        handle = await driver.submit(job(tag, "surroundings"))
        said = [msgspec.json.decode(each.summary) for each in await handle.wait()]
        jobs.append({tuple(each["loaded"]) for each in said})
    loaded = set().union(*jobs)
    assert len({pid for pid, *_ in loaded}) == len(loaded) < sum(map(len, jobs))


async def test_a_slot_on_a_lost_executor_comes_back_as_its_next_incarnation(
    driver: SparkDriver, cluster: SparkCluster, tmp_path: Path
) -> None:
    where = str(tmp_path).encode()
    handle = await driver.submit(job("moved", "wait_for_file", slots=1, argument=where))
    first = (await asyncio.to_thread(wait_for_slots, tmp_path, "moved", 1))[0]
    for process in executors(cluster):
        if first in {child.pid for child in process.children(recursive=True)}:
            process.kill()
    os.remove(tmp_path / "running-moved-0")
    second = (await asyncio.to_thread(wait_for_slots, tmp_path, "moved", 1))[0]
    (tmp_path / "go").touch()
    [summary] = await handle.wait()
    assert summary.incarnation == 1
    assert second != first


async def test_a_cancelled_job_ends(driver: SparkDriver, tmp_path: Path) -> None:
    handle = await driver.submit(job("unwanted", "wait_for_file", argument=str(tmp_path).encode()))
    pids = await asyncio.to_thread(wait_for_slots, tmp_path, "unwanted", 2)
    slots = [psutil.Process(pid) for pid in pids.values()]
    await driver.cancel("unwanted")
    with pytest.raises(SparkJobCancelled):
        await handle.wait()
    assert await asyncio.to_thread(survivors, slots) == []
