"""Rows share the worker with others: its slot, and its only thread."""

import asyncio

from noetl.kernel.errors import LogUnavailable
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.frames import BREATH_SECONDS
from tests.unit.runtime.frame_scene import doubled, index_of
from tests.unit.runtime.worker_scene import LOOP, Behaving, Scene, frame, only_frame


async def test_side_by_side_rows_give_the_slot_back_only_while_all_of_them_wait() -> None:
    scene = Scene(Behaving(gate := ParkingGate()), steps=LOOP, slots=1)
    async with scene.running():
        await scene.do(frame([0, 1, 2], row_concurrency=3))
        gate.park(0)
        gate.park(1)
        await scene.do()
        assert scene.worker.free_slots == 0
        gate.park(2)
        await scene.do()
        assert scene.worker.free_slots == 1

        gate.end(1)
        await scene.do()
        assert scene.worker.free_slots == 1  # row 1 has ended, the others wait
        gate.end(0)
        gate.end(2)
        await scene.do()

        assert only_frame(scene.desk).row_count == 3
        assert scene.worker.free_slots == 1


class ParkingGate:
    """Rows wait inside, park when told, and end when told."""

    def __init__(self) -> None:
        self._parks = [asyncio.Event() for _ in range(3)]
        self._ends = [asyncio.Event() for _ in range(3)]

    def park(self, row: int) -> None:
        self._parks[row].set()

    def end(self, row: int) -> None:
        self._ends[row].set()

    async def __call__(self, job: Job, _journal: Journal, hold: Hold) -> RowResult:
        row = index_of(job)
        await self._parks[row].wait()
        await hold.park()
        await self._ends[row].wait()
        await hold.unpark()
        return RowResult(status="ok")


async def test_a_frame_keeps_its_slot_until_it_is_reported() -> None:
    scene = Scene(Behaving(doubled), steps=LOOP, slots=1)
    scene.desk.trouble = {"report": [LogUnavailable("the log is away")]}
    async with scene.running():
        await scene.do(frame([0, 1, 2], row_concurrency=3))
        assert scene.worker.free_slots == 0
        await scene.clock.advance(1)
        assert scene.worker.free_slots == 1


async def test_rows_that_never_wait_let_others_have_their_turn() -> None:
    turns = 0
    seen: list[int] = []
    scenes: list[Scene] = []

    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        scenes[0].clock.seconds += 1.01 * BREATH_SECONDS  # it computes
        seen.append(turns)
        return RowResult(status="ok")

    async def neighbour() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    scene = Scene(Behaving(run), steps=LOOP)
    scenes.append(scene)
    async with scene.running():
        beside = asyncio.create_task(neighbour())
        await scene.do(frame(list(range(20))))
        beside.cancel()

    assert only_frame(scene.desk).row_count == 20
    assert seen[-1] - seen[0] == 19  # after every row
