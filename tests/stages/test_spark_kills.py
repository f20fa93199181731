"""Slots, the driver and its JVM die in the middle of a stage, or fall asleep: the stage goes on."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from urllib.request import urlopen

import aiohttp
import msgspec
import psutil
import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.serving import internal_key_of
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameAbandoned, FrameCommitted, FrameDispatched, StageEngine
from noetl.domain.work import FrameReport
from noetl.kernel.ids import FrameId, StageId
from noetl.kernel.instant import plus
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.kernel.stage_token import StageGrant, stage_token
from tests.servers.processes import survivors
from tests.stages.half_done import Stage, begun, eventually, eventually_so, slots_of
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import LEASE_SECONDS, SLOT, SLOTS, Recorded, now, told_seconds
from tests.stages.slot_processes import jvm_of, python_workers
from tests.stages.stage_scene import ended

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]

SHORT_LEASE_SECONDS = 3.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    settings = Settings(
        home=str(tmp_path_factory.mktemp("kills") / "home"),
        stage_engine="spark",
        spark_slots=SLOTS,
        spark_memory_mb=512,
        lease_seconds=LEASE_SECONDS,
    )
    async with open_engine(settings) as engine:
        yield engine


@pytest.fixture
def counters() -> Iterator[HeldCounters]:
    with HeldCounters() as counters:
        yield counters
        counters.let_go()


async def test_a_slot_that_is_killed_comes_back_and_takes_its_frame_up(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters)
    victim = stage.slots[0]
    killed_at = now()
    victim.kill()
    counters.let_go()
    events = await stage.end_well(stage.in_flight[victim.pid], slots_lost=1)
    told_seconds("a slot was killed", events, killed_at)


async def test_a_driver_that_is_killed_is_followed_by_another(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters)
    await _all_slots_lost(stage, stage.driver, "the driver was killed")


async def test_a_jvm_that_is_killed_is_followed_by_another(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters)
    await _all_slots_lost(stage, jvm_of(stage.driver), "the JVM was killed")


async def _all_slots_lost(stage: Stage, victim: psutil.Process, what: str) -> None:
    left = [stage.driver, *stage.driver.children(recursive=True)]
    killed_at = now()
    victim.kill()
    assert await asyncio.to_thread(survivors, left) == []
    stage.counters.let_go()
    events = await stage.end_well(set().union(*stage.in_flight.values()), slots_lost=SLOTS)
    told_seconds(what, events, killed_at)
    jobs = [each.event.event for each in events if isinstance(each.event.event, StageEngine)]
    assert len({job.session_id for job in jobs}) == len(jobs)


async def test_a_slot_that_slept_past_its_lease_starts_nothing_and_is_refused(
    engine: Engine, counters: HeldCounters
) -> None:
    stage = await begun(engine, counters, lease_seconds=SHORT_LEASE_SECONDS)
    sleeper = stage.slots[0]
    in_doubt = stage.in_flight[sleeper.pid]
    server = _server_of(sleeper, counters)
    stopped_at = now()
    sleeper.suspend()
    try:
        counters.pace_seconds = 0.1  # so that the stage is still open when it wakes up
        counters.let_go()
        await stage.until(_is_lost_frame_committed)
        frame, stage_id, holder = _lost_frame(await stage.log())
    finally:
        sleeper.resume()
    await _refused(
        engine,
        server,
        FrameReport(
            execution_id=stage.execution,
            stage_id=stage_id,
            frame_id=frame,
            attempt=holder.attempt,
            worker_id=holder.worker_id,
            row_count=1,
        ),
    )
    counters.pace_seconds = 0.0
    events = await stage.end_well(in_doubt, slots_lost=1)
    told_seconds("a slot was stopped", events, stopped_at)


def _server_of(slot: psutil.Process, counters: HeldCounters) -> str:
    """Where the slot gets its frames."""
    found = slot.net_connections("inet")
    ports = {each.raddr.port for each in found if each.status == psutil.CONN_ESTABLISHED}
    [port] = ports - {counters.port}
    return f"http://127.0.0.1:{port}"


def _lost_frame(events: list[Recorded]) -> tuple[FrameId, StageId, FrameDispatched]:
    """The first one that was taken from its holder, and that holder's lease."""
    lost = next(each.event for each in events if isinstance(each.event.event, FrameAbandoned))
    frame, stage = lost.envelope.frame_id, lost.envelope.stage_id
    assert frame is not None
    assert stage is not None
    given = [each.event for each in events if each.event.envelope.frame_id == frame]
    leases = [each.event for each in given if isinstance(each.event, FrameDispatched)]
    return frame, stage, leases[0]


def _is_lost_frame_committed(events: list[Recorded]) -> bool:
    lost = {
        each.event.envelope.frame_id
        for each in events
        if isinstance(each.event.event, FrameAbandoned)
    }
    return any(
        each.event.envelope.frame_id in lost and isinstance(each.event.event, FrameCommitted)
        for each in events
    )


async def _refused(engine: Engine, server: str, report: FrameReport) -> None:
    """What the slot would say of its frame, said with a token such as its own."""
    grant = StageGrant(
        execution_id=report.execution_id,
        stage_id=report.stage_id,
        expires_at=plus(engine.clock.now(), seconds=60),
    )
    token = stage_token(internal_key_of(engine.settings), grant)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        said = session.post(f"{server}/api/work/report", data=msgspec.json.encode(report))
        async with said as answer:
            assert (answer.status, (await answer.json())["code"]) == (409, "claim_lost")


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
