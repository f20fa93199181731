"""Stages for an engine that is up or not, as a test says, and slots that come by hand."""

import asyncio

import msgspec

from noetl.decider.view import StageEngines
from noetl.domain.work import FrameWork, StageServed, WorkerIdentity
from noetl.kernel.errors import NoETLError, SparkDriverLost
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.ports.slot_source import Announce, EngineJob, StageOrder
from noetl.runtime.stage_slots import StageSlots
from tests.unit.runtime.desk_scene import WORKER, Scene

LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: far, path: slots/far}
workflow:
  - step: each
    loop: {in: "{{ range(4) | list }}", iterator: x, engine: ENGINE, spec: {mode: MODE}}
    tool: {kind: noop}
"""
SLOTS = 6  # of an engine for one stage; the machine of a scene has two processors
ASKED = LOOP.replace("ENGINE", "spark").replace("MODE", "parallel")
CHOSEN = LOOP.replace("ENGINE", "auto").replace("MODE", "fanout")
CURSOR = CHOSEN.replace("fanout", "cursor").replace(
    'in: "{{ range(4) | list }}"', "cursor: {kind: sqlite, database: all.db, claim: SELECT 1}"
)


class Source:
    """An engine that is up or not, as a test says."""

    def __init__(self) -> None:
        self.orders: list[StageOrder] = []
        self.warmed = 0
        self.fails: NoETLError | None = None  # instead of starting
        self.is_up = asyncio.Event()
        self.is_up.set()
        self.jobs = 0  # that were started
        self.withdrawn: list[str] = []  # tags
        self._ends: list[asyncio.Future[None]] = []  # of each order

    async def provide(self, order: StageOrder, announce: Announce) -> None:
        self.orders.append(order)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ends.append(ended)
        if self.fails is not None:
            raise self.fails
        await self.is_up.wait()
        await announce(EngineJob(engine="spark", session_id="s", tag="t", slots=order.slots))
        self.jobs += 1
        await ended

    def lose(self, error: NoETLError) -> None:
        self._ends[-1].set_exception(error)

    def end(self, number: int) -> None:
        """All slots of that order have left."""
        self._ends[number].set_result(None)

    def leaves_none(self, error: NoETLError) -> bool:
        return isinstance(error, SparkDriverLost)

    async def withdraw(self, job: EngineJob) -> None:
        self.withdrawn.append(job.tag)

    async def warm_up(self) -> None:
        self.warmed += 1

    async def close(self) -> None: ...


class Stage:
    """A scene with slots from a source."""

    def __init__(self, engines: StageEngines = "auto") -> None:
        self.scene = Scene()
        coordinator = self.scene.coordinator
        coordinator.held = msgspec.structs.replace(
            coordinator.held, engine=engines, engine_slots=SLOTS
        )
        self.source = Source()
        self.slots = StageSlots(coordinator, self.source, SLOTS)

    async def start(self, text: str) -> ExecutionId:
        execution = await self.scene.start(text)
        await self.settle()
        return execution

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
            await self.scene.coordinator.drain()

    async def claim(self, by: WorkerIdentity = WORKER) -> list[int]:
        """Rows of the frames that somebody gets."""
        works = await self.scene.claim(1, by)
        return [work.row_count for work in works if isinstance(work, FrameWork)]

    def slot(self, boot: int = 0, *, order_number: int = -1, number: int = 0) -> WorkerIdentity:
        order = self.source.orders[order_number]
        return WorkerIdentity(
            worker_id=WorkerId(f"spark/{order.stage_id}/{number}"),
            boot_id=str(boot),
            slots=1,
            serves=StageServed(execution_id=order.execution_id, stage_id=order.stage_id),
        )
