"""A stage that slots are in the middle of, and how tests wait for it and end it."""

import asyncio
from collections.abc import Awaitable, Callable

import psutil

from noetl.bootstrap.engine import Engine
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.starting import StartRequest
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.stages.held_counters import HeldCounters
from tests.stages.killed_stage import (
    FRAME_ROWS,
    LEASE_SECONDS,
    PATH,
    ROWS,
    SLOTS,
    Recorded,
    check_leases,
    check_result,
    check_whole,
    frame_of,
    log_of,
    text,
)
from tests.stages.slot_processes import driver_of, python_workers
from tests.stages.stage_scene import ended

FLOWING = 4 * FRAME_ROWS
"""Effects after which slots have frames of their own."""

QUIET_SECONDS = 2.0

Leaders = Callable[[], list[psutil.Process]]


class Stage:
    """One that slots are in the middle of: each has frames, effects on record, others in flight."""

    def __init__(
        self,
        engine: Engine,
        counters: HeldCounters,
        execution: ExecutionId,
        leaders: Leaders,
        frames_per_slot: int,
    ) -> None:
        self.engine = engine
        self.counters = counters
        self.execution = execution
        self.driver = driver_of()
        self.frames_per_slot = frames_per_slot
        self._leaders = leaders
        self.look()

    def look(self) -> None:
        """Which processes are slots now, and what each has in flight."""
        found = [each for leader in self._leaders() for each in python_workers(leader)]
        in_flight = {each: self.counters.held_from(each) for each in found}
        self.slots = [each for each in found if in_flight[each]]
        assert self.slots
        self.in_flight = {each.pid: in_flight[each] for each in self.slots}

    async def log(self) -> list[Recorded]:
        return await log_of(self.engine.platform, self.execution)

    async def until(self, holds: Callable[[list[Recorded]], bool]) -> None:
        await eventually_so(lambda: self._holds(holds))

    async def _holds(self, holds: Callable[[list[Recorded]], bool]) -> bool:
        return holds(await self.log())

    async def end_well(self, in_doubt: set[str], slots_lost: int) -> list[Recorded]:
        ending = await ended(self.engine, self.execution)
        assert ending.status == "COMPLETED", ending.error
        assert ending.result is not None
        check_result(plain_result(value_of(ending.result)))
        await check_whole(self.engine.platform, self.execution, self.counters, in_doubt)
        events = await self.log()
        check_leases(events, slots_lost * self.frames_per_slot)
        return events


async def eventually_so(holds: Callable[[], Awaitable[bool]]) -> None:
    """On a busy machine Spark takes minutes to start."""
    for _ in range(2_400):
        if await holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it has not come to pass")


async def eventually(holds: Callable[[], bool]) -> None:
    async def so() -> bool:
        return holds()

    await eventually_so(so)


async def begun(
    engine: Engine,
    counters: HeldCounters,
    *,
    lease_seconds: float = LEASE_SECONDS,
    frames_per_slot: int = 1,
    leaders: Leaders = lambda: [driver_of()],
) -> Stage:
    """`leaders` are above the processes of slots: here it is the driver."""
    playbook = text(lease_seconds=lease_seconds, frames_per_slot=frames_per_slot)
    execution = await started(engine, counters, playbook)
    await eventually(lambda: len(slots_of(engine, execution)) == SLOTS)
    await half_done(counters, leaders, frames_per_slot)
    return Stage(engine, counters, execution, leaders, frames_per_slot)


async def started(engine: Engine, counters: HeldCounters, playbook: str) -> ExecutionId:
    entry = (await engine.playbooks.register(DEFAULT_SCOPE, playbook)).entry
    payload = {"url": counters.url, "rows": ROWS}
    return await engine.starter.start(
        StartRequest(scope=DEFAULT_SCOPE, path=PATH, version=entry.version, payload=payload)
    )


async def half_done(counters: HeldCounters, leaders: Leaders, frames_per_slot: int) -> None:
    """Rows flow until every slot has all the frames that it can have, and then stand still."""
    counters.open()
    await flown(counters, FLOWING * frames_per_slot)
    while not all_have_frames(counters, leaders, frames_per_slot):
        counters.let_go()
        await flown(counters, FRAME_ROWS // 2)


async def flown(counters: HeldCounters, effects: int) -> None:
    before = len(counters.arrivals)
    await eventually(lambda: len(counters.arrivals) > before + effects)
    counters.hold()
    await settled(counters)


def all_have_frames(counters: HeldCounters, leaders: Leaders, frames_per_slot: int) -> bool:
    processes = [each for leader in leaders() for each in python_workers(leader)]
    held = [{frame_of(key) for key in counters.held_from(each)} for each in processes]
    return sorted(len(frames) for frames in held if frames) == [frames_per_slot] * SLOTS


def slots_of(engine: Engine, execution: ExecutionId) -> list[str]:
    serving = [seat.worker.serves for seat in engine.coordinator.seats.all()]
    return [each.stage_id for each in serving if each and each.execution_id == execution]


async def settled(counters: HeldCounters) -> None:
    """Nothing moves any more, and what was done before has been in the journal for long."""
    seen = -1
    while seen != len(counters.arrivals) or not counters.held:
        seen = len(counters.arrivals)
        await asyncio.sleep(QUIET_SECONDS)
