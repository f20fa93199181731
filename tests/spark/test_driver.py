"""Slots on this machine: they know who they are, are tried again, cancelled, and run together."""

import asyncio
import contextlib
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

from noetl.kernel.errors import (
    RequestInvalid,
    SparkDriverLost,
    SparkJobCancelled,
    SparkJobFailed,
)
from noetl.spark.driver import SparkDriver
from tests.spark.driving import driver_on, job, listening_addresses, system_java, wait_for_slots

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SparkDriver]:
    java = system_java(tmp_path_factory.mktemp("java"))
    async with driver_on(java) as running:
        yield running


async def test_every_slot_knows_who_it_is(driver: SparkDriver) -> None:
    handle = await driver.submit(job("who", "echo", slots=5, argument=b"given"))
    summaries = await handle.wait()

    said = [msgspec.json.decode(each.summary) for each in summaries]
    assert [each["slot"]["number"] for each in said] == [0, 1, 2, 3, 4]
    assert {each["slot"]["stage_id"] for each in said} == {"stage"}
    assert {each["argument"] for each in said} == {"given"}
    assert {each.incarnation for each in summaries} == {0}
    assert handle.is_over


async def test_a_job_runs_in_the_session_that_was_recorded_for_it_or_not(
    driver: SparkDriver,
) -> None:
    recorded = (await driver.session()).session_id
    handle = await driver.submit(job("recorded", "echo", slots=1), session_id=recorded)
    assert handle.session_id == recorded
    await handle.wait()

    with pytest.raises(SparkDriverLost, match="no session elsewhere"):
        await driver.submit(job("recorded", "echo", slots=1), session_id="elsewhere")


@pytest.mark.parametrize("function", ["fail_once", "die_once"])
async def test_a_slot_that_fails_comes_back_as_its_next_incarnation(
    driver: SparkDriver, function: str
) -> None:
    handle = await driver.submit(job(function, function))
    assert [each.incarnation for each in await handle.wait()] == [1, 1]


async def test_a_later_job_of_a_stage_starts_above_earlier_incarnations(
    driver: SparkDriver,
) -> None:
    later = msgspec.structs.replace(job("later", "fail_once", slots=1), incarnation_first=4)
    [summary] = await (await driver.submit(later)).wait()
    assert summary.incarnation == 4


async def test_a_job_that_cannot_be_done_says_why(driver: SparkDriver) -> None:
    handle = await driver.submit(job("never", "fail_always", slots=1))
    with pytest.raises(SparkJobFailed, match="ValueError: slot 0 cannot do it"):
        await handle.wait()


async def test_a_cancelled_job_gives_its_slots_back(driver: SparkDriver, tmp_path: Path) -> None:
    where = str(tmp_path).encode()
    handle = await driver.submit(job("unwanted", "wait_for_file", argument=where))
    workers = await asyncio.to_thread(wait_for_slots, tmp_path, "unwanted", 2)
    assert await driver.running_tags() == ("unwanted",)

    await driver.cancel("unwanted")
    with pytest.raises(SparkJobCancelled):
        await handle.wait()
    await (await driver.submit(job("next", "echo"))).wait()
    assert await driver.running_tags() == ()
    assert not any(map(psutil.pid_exists, workers.values()))


async def test_a_job_cancelled_before_it_began_does_not_begin(
    driver: SparkDriver, tmp_path: Path
) -> None:
    where = str(tmp_path).encode()
    earlier = await driver.submit(job("earlier", "wait_for_file", argument=where))
    await asyncio.to_thread(wait_for_slots, tmp_path, "earlier", 2)  # all that there are
    handle = await driver.submit(job("early", "wait_for_file", argument=where))
    await driver.cancel("early")
    with pytest.raises(SparkJobCancelled):
        await handle.wait()
    (tmp_path / "go").touch()
    await earlier.wait()
    assert await driver.running_tags() == ()
    assert wait_for_slots(tmp_path, "early", 0) == {}


async def test_cancelling_what_does_not_run_does_nothing(
    driver: SparkDriver, tmp_path: Path
) -> None:
    where = str(tmp_path).encode()
    other = await driver.submit(job("somebody", "wait_for_file", slots=1, argument=where))
    await asyncio.to_thread(wait_for_slots, tmp_path, "somebody", 1)
    await driver.cancel("nobody")
    await driver.cancel("nobody", session_id="a session of long ago")
    assert await driver.running_tags() == ("somebody",)
    (tmp_path / "go").touch()
    assert [each.incarnation for each in await other.wait()] == [0]


async def test_two_jobs_run_side_by_side(driver: SparkDriver, tmp_path: Path) -> None:
    where = str(tmp_path).encode()
    one = await driver.submit(job("one", "wait_for_file", slots=1, argument=where))
    two = await driver.submit(job("two", "wait_for_file", slots=1, argument=where))
    with pytest.raises(RequestInvalid, match="one runs already"):
        await driver.submit(job("one", "echo"))

    await asyncio.to_thread(wait_for_slots, tmp_path, "one", 1)
    await asyncio.to_thread(wait_for_slots, tmp_path, "two", 1)
    (tmp_path / "go").touch()
    assert [len(await handle.wait()) for handle in (one, two)] == [1, 1]


async def test_the_argument_is_seen_by_nobody_else(driver: SparkDriver) -> None:
    secret = "token-of-this-stage"
    handle = await driver.submit(job("secret", "surroundings", slots=1, argument=secret.encode()))
    [summary] = await handle.wait()
    session = await driver.session()
    about = f"{session.ui_url}/api/v1/applications/{session.session_id}"

    assert secret not in summary.summary.decode()
    for page in ("environment", "jobs", "sql?details=true&planDescription=true"):
        text = await asyncio.to_thread(_page, f"{about}/{page}")
        assert secret not in text
    assert "secret" in await asyncio.to_thread(_page, f"{about}/jobs")  # the tag, so it was shown
    assert driver.pid is not None
    for process in psutil.Process(driver.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker that has just gone
            assert secret not in " ".join(process.cmdline())


async def test_nobody_outside_reaches_it(driver: SparkDriver) -> None:
    await driver.session()
    assert driver.pid is not None
    assert {address.removeprefix("::ffff:") for address in listening_addresses(driver.pid)} == {
        "127.0.0.1"
    }


async def test_an_argument_must_not_be_data(driver: SparkDriver) -> None:
    with pytest.raises(RequestInvalid, match="pass a reference"):
        await driver.submit(job("data", "echo", argument=bytes(5_000_000)))


def _page(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())
