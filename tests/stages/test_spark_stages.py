"""Stages on Spark tasks of this machine, which reach the engine over HTTP."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameDispatched, StageEngine
from tests.stages.row_cases import LOOP
from tests.stages.stage_scene import events_of, said, serving, started
from tests.stages.stage_suite import SparkStageSuite

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    home = tmp_path_factory.mktemp("spark") / "home"
    async with open_engine(Settings(home=str(home), stage_engine="spark")) as engine:
        yield engine


class TestSparkStages(SparkStageSuite):
    async def test_the_job_is_named_before_it_starts(self, engine: Engine) -> None:
        async with serving() as target:
            target.opens.set()
            execution = await started(engine, self.on_engine(LOOP), url=target.url)
            await said(engine, execution)
        events = await events_of(engine, execution)
        [job] = [each for each in events if isinstance(each, StageEngine)]
        first = next(each for each in events if isinstance(each, FrameDispatched))
        assert events.index(job) < events.index(first)
        assert job.engine == "spark"
        assert job.tag.startswith("noetl-stage-")
        assert job.session_id == (await engine.spark.session()).session_id
