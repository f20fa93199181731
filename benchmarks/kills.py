"""`recovery.executor|worker|driver|coordinator`: how soon a stage on Spark goes on after a kill.

By the times of events in the log: from the last commit before the kill to the first one after it of
a frame that the dead held, by whoever holds it then. The kills are those of the tests, of a stage
that flows, and all rows are counted at its end. The worker that is killed stays away, so that the
other one has all to do, or is started again at once (`recovery.worker_restarted`). For a driver the
limit is what the first session of the same run took to its first commit: another session has to
start. A limit that is exceeded is a figure, too: `is_met` tells. `to_…` are seconds since the last
commit before the kill; `cpu_seconds` are those of all our processes, from when the dead are gone to
the end of the stage.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.measurement import Measurement
from benchmarks.process_tree import tree_cpu_seconds
from noetl.adapters.system.ids import SnowflakeIds
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.platform import open_platform
from noetl.domain.events import FrameAbandoned, FrameCommitted, FrameDispatched, StageOpened
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant, from_datetime, seconds_between
from noetl.servers.java import find_java
from noetl.servers.spark_cluster import SparkCluster
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.servers.processes import family_of, survivors
from tests.spark.driving import ENVIRONMENT
from tests.stages.coordinator import coordinator, settings_of, word
from tests.stages.far_engine import far_engine
from tests.stages.half_done import eventually, eventually_so, slots_of, started
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import (
    FRAME_ROWS,
    LEASE_SECONDS,
    SLOT,
    SLOTS,
    Recorded,
    check_leases,
    check_result,
    log_of,
    text,
)
from tests.stages.slot_processes import driver_of, executor_of, executors, python_workers
from tests.stages.stage_scene import ended

PACE_SECONDS = 0.05
FLOWING = 4 * FRAME_ROWS
COORDINATOR_SECONDS_MAX = LEASE_SECONDS + 10.0


class Limit(NamedTuple):
    seconds: float
    name: str


ASKED_FOR = Limit(30.0, "what is asked for")


class Commit(NamedTuple):
    at: Instant
    frame: str
    holder: FrameDispatched


class Gap(NamedTuple):
    """Seconds; all but the last from the last commit before the kill on."""

    to_kill: float
    to_next_commit: float  # whoever made it
    to_lost_frame: float  # committed by its next holder
    to_slot: float  # that commits what it was given after the kill
    cpu_seconds: float  # of all processes, to the end


def gap(events: list[Recorded], killed_at: Instant, cpu_seconds: float) -> Gap:
    commits = _commits(events)
    last = max(each.at for each in commits if each.at <= killed_at)
    later = [each for each in commits if each.at > killed_at]
    lost = {
        each.event.envelope.frame_id
        for each in events
        if isinstance(each.event.event, FrameAbandoned) and each.at > killed_at
    }
    given = {
        each.event.envelope.frame_id
        for each in events
        if isinstance(each.event.event, FrameDispatched)
        and each.at > killed_at
        and each.event.event.worker_id.startswith(SLOT)
    }
    by_slots = [each for each in later if each.frame in given]
    return Gap(
        to_kill=seconds_between(last, killed_at),
        to_next_commit=seconds_between(last, later[0].at),
        to_lost_frame=seconds_between(last, next(each.at for each in later if each.frame in lost)),
        to_slot=seconds_between(last, by_slots[0].at if by_slots else later[0].at),
        cpu_seconds=cpu_seconds,
    )


def session_seconds(events: list[Recorded]) -> float:
    """From the opening of the stage to the first commit by a slot."""
    opened = next(each.at for each in events if isinstance(each.event.event, StageOpened))
    by_slots = [each for each in _commits(events) if each.holder.worker_id.startswith(SLOT)]
    return seconds_between(opened, by_slots[0].at)


def _commits(events: list[Recorded]) -> list[Commit]:
    """In the order of the log, each with the lease that it was made under."""
    holders: dict[str, FrameDispatched] = {}
    found: list[Commit] = []
    for each in events:
        frame = each.event.envelope.frame_id or ""
        match each.event.event:
            case FrameDispatched() as given:
                holders[frame] = given
            case FrameCommitted():
                found.append(Commit(each.at, frame, holders[frame]))
            case _:
                pass
    return found


class Flow(NamedTuple):
    """A stage whose slots are at work, and all they need."""

    engine: Engine
    counters: HeldCounters
    execution: ExecutionId

    def slot(self, leaders: list[psutil.Process]) -> psutil.Process:
        found = [each for leader in leaders for each in python_workers(leader)]
        return self.counters.callers(found)[0]

    async def ended(
        self, killed_at: Instant, dead: list[psutil.Process]
    ) -> tuple[Gap, list[Recorded]]:
        """What the dead had used goes with those of them that lose their parents, so it is read
        when all of them are gone."""
        await asyncio.to_thread(survivors, dead)
        used = tree_cpu_seconds()
        ending = await ended(self.engine, self.execution)
        cpu_seconds = tree_cpu_seconds() - used
        if ending.status != "COMPLETED" or ending.result is None:
            raise AssertionError(ending.error)
        check_result(plain_result(value_of(ending.result)))
        events = await log_of(self.engine.platform, self.execution)
        check_leases(events, frames_lost=SLOTS)
        return gap(events, killed_at, cpu_seconds), events


@asynccontextmanager
async def _flowing(engine: Engine) -> AsyncIterator[Flow]:
    with HeldCounters() as counters:
        counters.pace_seconds = PACE_SECONDS
        execution = await started(engine, counters, text())
        await eventually(lambda: len(slots_of(engine, execution)) == SLOTS)
        counters.open()
        await eventually_so(lambda: _have_committed(engine, execution))
        yield Flow(engine, counters, execution)


async def _have_committed(engine: Engine, execution: ExecutionId) -> bool:
    """Whether each slot has, so that it is in the middle of another frame."""
    holders = [each.holder for each in _commits(await log_of(engine.platform, execution))]
    return len({each.worker_id for each in holders if each.worker_id.startswith(SLOT)}) == SLOTS


@asynccontextmanager
async def _cluster() -> AsyncIterator[tuple[SparkCluster, Engine]]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noetl-bench-")))
        java = find_java(ENVIRONMENT, folder=folder / "java")
        cluster = SparkCluster(folder / "cluster", java)
        await asyncio.to_thread(cluster.start)
        stack.callback(cluster.stop)
        where = (folder / "home", cluster.url, cluster.settings)
        yield cluster, await stack.enter_async_context(far_engine(*where))


async def executor() -> AsyncIterator[Measurement]:
    async with _cluster() as (cluster, engine), _flowing(engine) as flow:
        victim = executor_of(cluster, flow.slot(executors(cluster)))
        everybody, killed_at = family_of(victim.pid), _now()
        victim.kill()
        found, _ = await flow.ended(killed_at, everybody)
    yield _measured("executor", found, found.to_lost_frame, ASKED_FOR)


async def worker() -> AsyncIterator[Measurement]:
    for name, comes_back in (("worker", False), ("worker_restarted", True)):
        async with _cluster() as (cluster, engine), _flowing(engine) as flow:
            victim = cluster.workers[0]
            everybody, killed_at = family_of(victim.pid), _now()
            await asyncio.to_thread(victim.kill)
            if comes_back:
                await asyncio.to_thread(victim.start)
            found, _ = await flow.ended(killed_at, everybody)
        yield _measured(name, found, found.to_lost_frame, ASKED_FOR)


async def driver() -> AsyncIterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        async with open_engine(settings_of(f"{folder}/home")) as engine, _flowing(engine) as flow:
            victim = driver_of()
            everybody, killed_at = family_of(victim.pid), _now()
            victim.kill()
            found, events = await flow.ended(killed_at, everybody)
    limit = Limit(session_seconds(events), "the first session's start, same run")
    yield _measured("driver", found, found.to_slot, limit)


async def killed_coordinator() -> AsyncIterator[Measurement]:
    execution = ExecutionId(SnowflakeIds(7).new_id())
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder, HeldCounters() as counters:
        counters.pace_seconds = PACE_SECONDS
        home = f"{folder}/home"
        order: dict[str, Any] = {"home": home, "execution": execution, "url": counters.url}
        order["frames_per_slot"] = 1
        with coordinator(**order, waits_for_slots=True) as first:
            await word(first, "running")
            await word(first, "slots")
            counters.open()
            await eventually(lambda: len(counters.arrivals) > 2 * FLOWING)
            everybody = family_of(first.pid)
            killed_at = _now()
            first.kill()
        used = tree_cpu_seconds()
        with coordinator(**order, waits_for_slots=False) as second:
            await word(second, "running")
            over = await word(second, "over")
            check_result(over["result"])
            cpu_seconds = tree_cpu_seconds() - used
        await asyncio.to_thread(survivors, everybody)
        async with open_platform(settings_of(home), create=False) as platform:
            found = gap(await log_of(platform, execution), killed_at, cpu_seconds)
    limit = Limit(COORDINATOR_SECONDS_MAX, f"a lease of {LEASE_SECONDS:g} s and ten seconds")
    yield _measured("coordinator", found, found.to_lost_frame, limit)


def _measured(who: str, found: Gap, seconds: float, limit: Limit) -> Measurement:
    return Measurement(
        name=f"recovery.{who}",
        value=seconds,
        unit="s from the last commit before the kill to the next of what was lost",
        limit=limit.seconds,
        limit_name=limit.name,
        detail={
            "is_met": "yes" if seconds <= limit.seconds else "no",
            **{name: round(value, 3) for name, value in found._asdict().items()},
        },
    )


def _now() -> Instant:
    return from_datetime(datetime.now(UTC))


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "recovery.executor": executor,
    "recovery.worker": worker,
    "recovery.driver": driver,
    "recovery.coordinator": killed_coordinator,
}
