"""Stages on Spark tasks of this machine, which reach the engine over HTTP."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import StageEngine
from tests.stages.stage_suite import SparkStageSuite, ended, events_of, serving, started

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    home = tmp_path_factory.mktemp("spark") / "home"
    async with open_engine(Settings(home=str(home), stage_engine="spark")) as engine:
        yield engine


class TestSparkStages(SparkStageSuite):
    async def test_the_job_is_named_before_it_starts(self, engine: Engine) -> None:
        async with serving() as target:
            execution = await started(engine, self.text(), url=target.url, rows=400)
            await self.open_when_begun(engine, target, execution)
            assert (await ended(engine, execution)).status == "COMPLETED"
        (job,) = [
            each for each in await events_of(engine, execution) if isinstance(each, StageEngine)
        ]
        assert job.engine == "spark"
        assert job.tag.startswith("noetl-stage-")
        assert job.session_id
