"""Stages on Spark tasks of this machine, which reach the engine over HTTP."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import StageEngine
from noetl.kernel.ids import ExecutionId
from tests.stages.stage_suite import StageSuite, ended, events_of, serving, started

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    home = tmp_path_factory.mktemp("spark") / "home"
    async with open_engine(Settings(home=str(home), stage_engine="spark")) as engine:
        yield engine


def _has_slots(engine: Engine) -> bool:
    """Whether a slot has come for the stage."""
    return any(seat.worker.serves is not None for seat in engine.coordinator.seats.all())


class TestSparkStages(StageSuite):
    engine_name = "spark"

    def check_workers(self, workers: Counter[str]) -> None:
        assert any(worker.startswith("spark/") for worker in workers), workers

    def has_begun(self, engine: Engine) -> bool:
        return _has_slots(engine)

    async def wait_until_idle(self, engine: Engine, execution: ExecutionId) -> None:
        """Slots of the cancelled stage have left their seats."""
        await asyncio.sleep(3.0)  # workers hear of it with their next heartbeat
        for _ in range(100):
            seats = engine.coordinator.seats.all()
            serving = [seat.worker.serves for seat in seats if seat.worker.serves is not None]
            if not any(each.execution_id == execution for each in serving):
                return
            await asyncio.sleep(0.1)
        raise AssertionError("slots of a cancelled execution are still there")

    async def test_the_job_is_named_before_it_starts(self, engine: Engine) -> None:
        async with serving() as target:
            execution = await started(engine, self.text(), url=target.url, rows=400)
            await self.open_when_begun(engine, target)
            assert (await ended(engine, execution)).status == "COMPLETED"
        (job,) = [
            each for each in await events_of(engine, execution) if isinstance(each, StageEngine)
        ]
        assert job.engine == "spark"
        assert job.tag.startswith("noetl-stage-")
        assert job.session_id
