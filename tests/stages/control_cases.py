"""People pause, resume and cancel executions in the middle of a stage, or run two at a time."""

import asyncio

from noetl.bootstrap.engine import Engine
from noetl.domain.events import FrameCommitted, FrameDispatched
from noetl.kernel.scope import DEFAULT_SCOPE
from tests.stages.engine_case import EngineCase
from tests.stages.row_cases import LOOP
from tests.stages.stage_scene import ended, events_of, eventually, said, serving, started

SMALL = LOOP.replace("max_in_flight: 8", "max_in_flight: 4").replace("max_rows: 20", "max_rows: 10")
"""One frame at a time, in one slot: two of these fit on any engine."""


class ControlCases(EngineCase):
    async def test_a_pause_lets_frames_end_and_a_resume_goes_on(self, engine: Engine) -> None:
        async with serving() as target:
            execution = await started(engine, self.on_engine(LOOP), url=target.url, rows=200)
            await eventually(lambda: len(target.asked) >= 4)
            await engine.control.pause(DEFAULT_SCOPE, execution)
            target.opens.set()
            await self.check_idle(engine, execution)
            events = await events_of(engine, execution)
            frames = [each for each in events if isinstance(each, FrameDispatched)]
            committed = [each for each in events if isinstance(each, FrameCommitted)]
            assert len(committed) == len(frames) <= 2, "what was out has ended, and no more began"
            assert sum(each.row_count for each in committed) == len(target.told) >= 4
            await asyncio.sleep(0.5)
            assert len(await events_of(engine, execution)) == len(events)

            await engine.control.resume(DEFAULT_SCOPE, execution)
            result = await said(engine, execution)
        assert result["squares"] == [number * number for number in range(200)]
        assert len(target.told) == 200
        assert set(target.told.values()) == {1}
        await self.check_workers(engine, execution)

    async def test_a_cancelled_execution_leaves_nothing_running(self, engine: Engine) -> None:
        async with serving() as target:
            execution = await started(engine, self.on_engine(LOOP), url=target.url, rows=1_000)
            await eventually(lambda: target.here == 8)
            await self.check_running(engine, execution)
            await engine.control.cancel(DEFAULT_SCOPE, execution)
            assert (await ended(engine, execution)).status == "CANCELLED"
            await eventually(lambda: target.here == 0)
            await self.check_idle(engine, execution)
            target.opens.set()
            await asyncio.sleep(0.5)
        assert target.asked.total() == 8
        assert not target.told
        await self.check_workers(engine, execution)

    async def test_two_executions_run_side_by_side(self, engine: Engine) -> None:
        async with serving() as target:
            both = [
                await started(engine, self.on_engine(SMALL), url=target.url, first=first, rows=40)
                for first in (0, 1_000)
            ]
            await eventually(lambda: {number // 1_000 for number in target.asked} == {0, 1})
            target.opens.set()
            results = [await said(engine, execution) for execution in both]
        for first, result in zip((0, 1_000), results, strict=True):
            assert result["squares"] == [each * each for each in range(first, first + 40)]
        assert len(target.told) == 80
        assert set(target.told.values()) == {1}
        for execution in both:
            assert (await self.check_workers(engine, execution)).total() == 4
