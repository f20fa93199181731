"""Coordinator, desk, reaper and workers on a log in memory; chance decides what happens next."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from noetl.adapters.memory.catalog import MemoryCatalog
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.domain.execution.fold import fold
from noetl.domain.execution.rows import TERMINAL
from noetl.domain.execution.state import ExecutionState
from noetl.kernel.errors import (
    ClaimLost,
    ExecutionNotFound,
    LogUnavailable,
    NoETLError,
    StateRefuses,
    VersionConflict,
)
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.control import Control
from noetl.runtime.coordinator import Coordinator, Held
from noetl.runtime.desk import CoordinatorDesk
from noetl.runtime.handout import LeaseTerms
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.projector import Projector
from noetl.runtime.reaper import Reaper
from noetl.runtime.recovery import Recovery
from noetl.runtime.starting import Starter, StartRequest
from noetl.wire.codec import open_stored
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.simulation.faulty_log import FaultyLog
from tests.simulation.hands import Acknowledged, Hand
from tests.unit.runtime.desk_scene import rising_ids
from tests.unit.runtime.worker_clock import VirtualClock

SNAPSHOT_INTERVAL_EVENTS = 7
LEASE_SECONDS = 30.0
STEPS_MAX = 80
ROUNDS_MAX = 300
START_TRIES_MAX = 50
EVENTS_MAX = 100_000
FORESEEN = (LogUnavailable, VersionConflict, ClaimLost, StateRefuses, ExecutionNotFound)

_PARSED = Playbooks(MemoryCatalog(VirtualClock().now, rising_ids(node=5)), MemoryPayloadStore())
"""Shared by all worlds: parsing costs more than a whole simulation."""
_PATHS: dict[str, str] = {}


async def _registered(text: str) -> str:
    if text not in _PATHS:
        _PATHS[text] = (await _PARSED.register(DEFAULT_SCOPE, text)).entry.path
    return _PATHS[text]


class World:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.clock = VirtualClock()
        self.new_id = rising_ids()
        self.log = FaultyLog(self.clock, self.chance)
        self.snapshots = MemorySnapshotStore()
        self.acknowledged = Acknowledged()
        self.hands = [Hand(name, self.chance, self.acknowledged) for name in ("anna", "ben")]
        self.surprises: list[BaseException] = []
        self.executions: list[ExecutionId] = []
        self._folded: dict[ExecutionId, ExecutionState] = {}
        self._seen = 0  # position up to which they are folded
        self._under_way: set[asyncio.Task[None]] = set()
        self._build()

    def _build(self) -> None:
        held = Held(
            log=self.log,
            results=memory_results(),
            playbooks=_PARSED,
            clock=self.clock,
            new_id=self.new_id,
            terms=LeaseTerms(lease_seconds=LEASE_SECONDS, attempts_max=1_000),
            snapshots=self.snapshots,
        )
        self.coordinator = Coordinator(held)
        starter = Starter(self.coordinator, lambda: "job")
        self.starter = starter
        self.control = Control(self.coordinator)
        self.desk = CoordinatorDesk(self.coordinator, starter)
        self.reaper = Reaper(self.coordinator, self.clock)

    async def start(self, *playbooks: str) -> None:
        """The last one is started; the others are there to be called."""
        paths = [await _registered(text) for text in playbooks]
        execution = ExecutionId(self.new_id())
        request = StartRequest(scope=DEFAULT_SCOPE, path=paths[-1], execution_id=execution)
        for _ in range(START_TRIES_MAX):  # as a client does
            with suppress(LogUnavailable, VersionConflict):
                self.executions.append(await self.starter.start(request))
                return
        raise TimeoutError("it never started")

    async def stir(self, *, may_cancel: bool) -> None:
        """Whatever may happen, at any moment, several things at once."""
        actions: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            self._claim, self._claim, self._work, self._work, self._work, self._twice,
            self._beat, self._restart_a_hand, self._wait, self._stall, self._intrude,
            self._pause, self._resume, self._resume, self._crash,
        ]  # fmt: skip
        if may_cancel:
            actions.append(self._cancel)
        for _ in range(STEPS_MAX):
            self._begin(self.chance.choice(actions)())
            for _ in range(self.chance.randint(0, 6)):
                await asyncio.sleep(0)

    async def settle(self) -> None:
        """Trouble is over: honest workers bring everything to its end."""
        self.log.faults = 0.0
        await self._quiet()
        for hand in self.hands:
            hand.forgetful = 0.0
        for _ in range(ROUNDS_MAX):
            if not await self.open_executions():
                break
            await self._honest_round()
        await self.reaper.look()
        await self._quiet()
        for hand in self.hands:  # what lies in their mailboxes is of no use any more
            await self.desk.deregister(hand.identity)
        await self._quiet()

    async def open_executions(self) -> dict[ExecutionId, str]:
        """By the log alone: to ask the coordinator would remind it of what it forgot."""
        for stored in await self.log.truth.tail(after_position=self._seen, limit=EVENTS_MAX):
            state = self._folded.setdefault(stored.execution_id, ExecutionState())
            fold([open_stored(stored)], state)
            self._seen = stored.position
        return {
            name: state.execution.status
            for name, state in self._folded.items()
            if state.execution.status not in TERMINAL
        }

    async def _honest_round(self) -> None:
        for execution, status in (await self.open_executions()).items():
            if status == "PAUSED":
                await self._foreseen(self.control.resume(DEFAULT_SCOPE, execution))
        for hand in self.hands:
            await self._foreseen(hand.claim(self.desk))
            for _ in range(2 * hand.slots):
                await self._foreseen(hand.work(self.desk))
        self.clock.seconds += LEASE_SECONDS / 3
        await self.reaper.look()

    def _begin(self, action: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(self._foreseen(action))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _foreseen(self, action: Awaitable[Any]) -> None:
        try:
            await action
        except FORESEEN:
            pass
        except NoETLError as error:
            self.surprises.append(error)

    async def _quiet(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way)
        await self.coordinator.drain()

    def _hand(self) -> Hand:
        return self.chance.choice(self.hands)

    async def _claim(self) -> None:
        await self._hand().claim(self.desk)

    async def _work(self) -> None:
        await self._hand().work(self.desk)

    async def _twice(self) -> None:
        """The same said twice at once."""
        hand = self._hand()
        await asyncio.gather(*(self._foreseen(hand.work(self.desk)) for _ in range(2)))

    async def _beat(self) -> None:
        await self._hand().beat(self.desk)

    async def _restart_a_hand(self) -> None:
        await self._hand().restart(self.desk)

    async def _stall(self) -> None:
        self.clock.seconds += LEASE_SECONDS * 1.5
        await self.reaper.look()

    async def _wait(self) -> None:
        self.clock.seconds += self.chance.uniform(0, LEASE_SECONDS / 2)
        await self.reaper.look()

    async def _intrude(self) -> None:
        await self.log.intrude(self.chance.choice(self.executions))

    async def _pause(self) -> None:
        await self.control.pause(DEFAULT_SCOPE, self.chance.choice(self.executions))

    async def _resume(self) -> None:
        await self.control.resume(DEFAULT_SCOPE, self.chance.choice(self.executions))

    async def _cancel(self) -> None:
        await self.control.cancel(DEFAULT_SCOPE, self.chance.choice(self.executions))

    async def _crash(self) -> None:
        """The coordinator dies; a new one goes on from the log. Sometimes a worker dies with it."""
        before = self.coordinator
        self._build()
        dead = {WorkerId(hand.name) for hand in self.hands if self.chance.random() < 0.5}
        for hand in self.hands:
            if hand.name in dead:
                hand.boot += 1
                hand.held.clear()
        await before.drain()
        projections = MemoryProjectionStore()
        projector = Projector(
            self.log, projections, self.snapshots, interval_events=SNAPSHOT_INTERVAL_EVENTS
        )
        recovery = Recovery(self.coordinator, projector, projections, dead=frozenset(dead))
        while True:  # as whoever starts the process does
            try:
                await recovery.resume(DEFAULT_SCOPE)
            except LogUnavailable:
                continue
            return
