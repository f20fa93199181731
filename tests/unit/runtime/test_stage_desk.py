"""The desk in words of stages and frames: what it waits for, and where it looks."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.projection_store import MemoryProjectionStore
from noetl.domain.frame_messages import FrameAsk, FrameBeat
from noetl.domain.log import Append, AppendOutcome
from noetl.domain.work import Work, WorkerIdentity
from noetl.kernel.ids import ExecutionId, StageId, WorkerId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.desk import CoordinatorDesk
from noetl.runtime.running import Running
from noetl.runtime.stage_desk import StageDesk
from tests.unit.runtime.desk_scene import Scene
from tests.unit.runtime.worker_clock import VirtualClock

LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: frames, path: stage_desk/frames}
workflow:
  - step: each
    loop: {in: [1, 2], spec: {mode: parallel, engine: local, frame: {max_rows: 1}}}
    tool: {kind: noop}
"""
ANNA = WorkerId("anna")
TURNS = 100


class SlowLog(MemoryEventLog):
    """Appends nothing while it is held."""

    def __init__(self) -> None:
        super().__init__(VirtualClock().now)
        self.is_free = asyncio.Event()
        self.is_free.set()

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        await self.is_free.wait()
        return await super().append(group)


class CountingDesk(CoordinatorDesk):
    claims = 0

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        self.claims += 1
        return await super().claim(worker, free_slots, wait_seconds)


class Watched(OrderedDict[ExecutionId, Running]):
    scans = 0

    def values(self) -> Any:
        self.scans += 1
        return super().values()


def desk_of(scene: Scene, desk: CoordinatorDesk | None = None) -> StageDesk:
    return StageDesk(
        desk or scene.desk,
        scene.coordinator,
        MemoryProjectionStore(),
        scene.results,
        DEFAULT_SCOPE,
    )


async def stage_of(scene: Scene) -> StageId:
    (stage,) = (await scene.coordinator.load(await scene.start(LOOP))).state.stages
    return stage


async def test_a_claim_waits_for_what_it_was_promised_and_does_not_ask_meanwhile() -> None:
    log = SlowLog()
    scene = Scene(log)
    stage = await stage_of(scene)
    counting = CountingDesk(scene.coordinator, scene.starter)
    log.is_free.clear()
    ask = FrameAsk(worker_id=ANNA, wait_seconds=0)
    claim = asyncio.ensure_future(desk_of(scene, counting).claim(stage, ask))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    asked = counting.claims
    assert not claim.done()
    log.is_free.set()

    assert len(await claim) == 1
    assert asked == 2, "once for frames, and once to say that it wants no more"


async def test_a_heartbeat_does_not_look_through_all_executions() -> None:
    scene = Scene()
    stage = await stage_of(scene)
    desk = desk_of(scene)
    (frame,) = await desk.claim(stage, FrameAsk(worker_id=ANNA))
    await desk.heartbeat(frame.frame_id, FrameBeat(worker_id=ANNA))
    scene.coordinator.running = watched = Watched(scene.coordinator.running)
    for _ in range(3):
        await desk.heartbeat(frame.frame_id, FrameBeat(worker_id=ANNA))
    looked = [watched.scans]
    desk._homes.clear()  # as after a restart
    await desk.heartbeat(frame.frame_id, FrameBeat(worker_id=ANNA))
    assert [*looked, watched.scans > 0] == [0, True]
