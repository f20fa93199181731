"""Slots, the driver and its JVM die in the middle of a stage, or fall asleep: the stage goes on."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from urllib.request import urlopen

import psutil
import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.serving import listening
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameCommitted, FrameDispatched, StageEngine
from noetl.domain.work import FrameReport
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.servers.process import LOOPBACK
from tests.servers.processes import survivors
from tests.stages.gate import Gate
from tests.stages.half_done import Stage, begun, eventually, eventually_so, slots_of
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import (
    FRAME_ROWS,
    LEASE_SECONDS,
    SLOT,
    SLOTS,
    Recorded,
    frame_of,
)
from tests.stages.slot_processes import jvm_of, python_workers
from tests.stages.stage_scene import ended

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]

SHORT_LEASE_SECONDS = 12.0
FRAMES_PER_SLOT = (1, 2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate() -> AsyncIterator[Gate]:
    async with Gate().listening() as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory, gate: Gate) -> AsyncIterator[Engine]:
    settings = Settings(
        home=str(tmp_path_factory.mktemp("kills") / "home"),
        stage_engine="spark",
        spark_slots=SLOTS,
        spark_memory_mb=512,
        lease_seconds=LEASE_SECONDS,
        public_url=gate.url,
    )
    async with open_engine(settings) as engine, listening(engine, LOOPBACK, 0) as serving:
        gate.server_url = serving[0]
        yield engine


@pytest.fixture
def counters() -> Iterator[HeldCounters]:
    with HeldCounters() as counters:
        yield counters
        counters.let_go()


@pytest.mark.parametrize("frames", FRAMES_PER_SLOT)
async def test_a_slot_that_is_killed_comes_back_and_takes_its_frames_up(
    engine: Engine, counters: HeldCounters, frames: int
) -> None:
    stage = await begun(engine, counters, frames_per_slot=frames)
    victim = stage.slots[0]
    victim.kill()
    counters.let_go()
    await stage.end_well(stage.in_flight[victim.pid], slots_lost=1)


async def test_a_driver_that_is_killed_is_followed_by_another(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters)
    await _all_slots_lost(stage, stage.driver)


async def test_a_jvm_that_is_killed_is_followed_by_another(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters, frames_per_slot=2)
    await _all_slots_lost(stage, jvm_of(stage.driver))


async def _all_slots_lost(stage: Stage, victim: psutil.Process) -> None:
    left = [stage.driver, *stage.driver.children(recursive=True)]
    victim.kill()
    assert await asyncio.to_thread(survivors, left) == []
    stage.counters.let_go()
    events = await stage.end_well(set().union(*stage.in_flight.values()), slots_lost=SLOTS)
    jobs = [each.event.event for each in events if isinstance(each.event.event, StageEngine)]
    assert len({job.session_id for job in jobs}) == len(jobs)


@pytest.mark.parametrize("frames", FRAMES_PER_SLOT)
async def test_a_slot_that_slept_past_its_lease_starts_nothing_and_its_commit_is_refused(
    engine: Engine, counters: HeldCounters, gate: Gate, frames: int
) -> None:
    """It falls asleep when the commit of one frame is on its way; of another one rows run. In doubt
    are these alone: while a commit is on its way, what its rows have done is written down.
    """
    gate.journaled.clear()
    stage = await begun(engine, counters, lease_seconds=SHORT_LEASE_SECONDS, frames_per_slot=frames)
    sleeper = stage.slots[0]
    done = min(map(frame_of, stage.in_flight[sleeper.pid]))
    in_doubt = {key for key in stage.in_flight[sleeper.pid] if frame_of(key) != done}
    kept = gate.keep_next_commit()
    counters.let_go(lambda key: frame_of(key) == done)
    report = await kept
    rows = range(done * FRAME_ROWS, (done + 1) * FRAME_ROWS)
    await eventually(lambda: all((row, "book") in gate.journaled for row in rows))
    sleeper.suspend()
    try:
        counters.pace_seconds = 0.1  # so that the stage is still open when it wakes up
        counters.let_go()
        await stage.until(lambda events: len(_taken_over(events)) == frames)
        assert report.frame_id in _taken_over(await stage.log())
    finally:
        sleeper.resume()
        gate.let_go()
    await eventually(lambda: gate.answers_to(report) != [])
    assert gate.answers_to(report) == [409]
    counters.pace_seconds = 0.0
    events = await stage.end_well(in_doubt, slots_lost=1)
    assert _committer(events, report) != (report.worker_id, report.attempt)


def _taken_over(events: list[Recorded]) -> set[str | None]:
    """Frames that somebody else has been given."""
    return {
        each.event.envelope.frame_id
        for each in events
        if isinstance(each.event.event, FrameDispatched) and each.event.event.attempt > 1
    }


def _committer(events: list[Recorded], report: FrameReport) -> tuple[str, int]:
    """Who ended the frame, and at which attempt."""
    own = [each.event.event for each in events if each.event.envelope.frame_id == report.frame_id]
    [commit] = [each for each in own if isinstance(each, FrameCommitted)]
    attempts = [each.attempt for each in own if isinstance(each, FrameDispatched)]
    return commit.worker_id, attempts[-1]


async def test_a_cancelled_stage_leaves_no_job_and_no_slot_not_even_one_that_hears_nothing(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters)
    deaf = stage.slots[0]
    deaf.suspend()
    try:
        assert await asyncio.to_thread(_running_jobs, await stage.log()) != []
        await engine.control.cancel(DEFAULT_SCOPE, stage.execution)
        assert (await ended(engine, stage.execution)).status == "CANCELLED"
        events = await stage.log()
        await eventually_so(lambda: _is_idle(events))
        assert await asyncio.to_thread(survivors, [deaf]) == []
    finally:
        if deaf.is_running():
            os.kill(deaf.pid, signal.SIGCONT)
    await eventually(lambda: slots_of(engine, stage.execution) == [])
    assert counters.callers(python_workers(stage.driver)) == []
    arrived = len(counters.arrivals)
    counters.let_go()
    await asyncio.sleep(1.0)
    assert len(counters.arrivals) == arrived
    assert any(worker.startswith(SLOT) for worker in _holders(events))


def _holders(events: list[Recorded]) -> list[str]:
    return [
        each.event.event.worker_id
        for each in events
        if isinstance(each.event.event, FrameDispatched)
    ]


async def _is_idle(events: list[Recorded]) -> bool:
    return await asyncio.to_thread(_running_jobs, events) == []


def _running_jobs(events: list[Recorded]) -> list[object]:
    """As Spark itself says, by its page."""
    [job] = [each.event.event for each in events if isinstance(each.event.event, StageEngine)]
    address = f"{job.ui_url}/api/v1/applications/{job.session_id}/jobs?status=running"
    with urlopen(address) as answer:
        found: list[object] = json.load(answer)
    return found
