"""What the cases of the stage suite ask of the engine that they run on."""

import asyncio
import json
import time
from abc import ABC
from collections import Counter
from typing import Any
from urllib.request import urlopen

import pytest

from noetl.bootstrap.engine import Engine
from noetl.domain.events import StageEngine
from noetl.kernel.ids import ExecutionId
from tests.stages.stage_scene import events_of, eventually, workers_of

LOCAL = "local"
SPARK = "spark/"
IDLE_SECONDS_MAX = 60.0


class EngineCase(ABC):
    """A part of the suite: runs with an `engine` whose loops say `engine: <engine_name>`."""

    engine_name: str

    def on_engine(self, text: str) -> str:
        return text.replace("ENGINE", self.engine_name)

    async def check_workers(self, engine: Engine, execution: ExecutionId) -> Counter[str]:
        """The engine that was asked for did all of the work."""
        workers = await workers_of(engine, execution)
        assert set(workers) == {LOCAL}
        return workers

    async def check_stays_here(self, engine: Engine, execution: ExecutionId) -> None:
        """Loops that are no work for any other engine, whatever they ask for."""
        assert set(await workers_of(engine, execution)) == {LOCAL}

    async def check_running(self, engine: Engine, execution: ExecutionId) -> None:
        """Slots of the engine have frames of the execution."""
        assert (await engine.coordinator.load(execution)).state.frames

    async def check_idle(self, engine: Engine, execution: ExecutionId) -> None:
        """The engine has let go of the execution's rows."""
        running = await engine.coordinator.load(execution)
        await eventually(lambda: not running.state.frames and running.is_recorded)


class SparkCase(EngineCase):
    engine_name = "spark"

    @pytest.fixture(autouse=True)
    def _pages(self, spark_page: str | None) -> None:
        self._spark_page = spark_page

    @pytest.fixture
    def spark_page(self) -> str | None:
        """Where Spark tells of its jobs, if the log does not say it."""
        return None

    async def check_workers(self, engine: Engine, execution: ExecutionId) -> Counter[str]:
        workers = await workers_of(engine, execution)
        assert workers
        assert all(worker.startswith(SPARK) for worker in workers), workers
        return workers

    async def check_running(self, engine: Engine, execution: ExecutionId) -> None:
        await super().check_running(engine, execution)
        assert slots_of(engine, execution) != []
        page = await self._page(engine, execution)
        assert await asyncio.to_thread(running_jobs, page) != []

    async def check_idle(self, engine: Engine, execution: ExecutionId) -> None:
        """No slot of the execution is left, and Spark itself says that no job runs."""
        await super().check_idle(engine, execution)
        await eventually(lambda: slots_of(engine, execution) == [])
        page = await self._page(engine, execution)
        await asyncio.to_thread(until_idle, page)

    async def _page(self, engine: Engine, execution: ExecutionId) -> str:
        events = await events_of(engine, execution)
        *_, job = [each for each in events if isinstance(each, StageEngine)]
        page = self._spark_page or job.ui_url
        assert page is not None, "nobody says where Spark's page is"
        return page


def slots_of(engine: Engine, execution: ExecutionId) -> list[str]:
    served = [seat.worker.serves for seat in engine.coordinator.seats.all()]
    return [each.stage_id for each in served if each and each.execution_id == execution]


def running_jobs(page: str) -> list[Any]:
    """As Spark itself says."""
    found: list[Any] = []
    for application in _told(f"{page}/api/v1/applications"):
        found += _told(f"{page}/api/v1/applications/{application['id']}/jobs?status=running")
    return found


def until_idle(page: str) -> None:
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while found := running_jobs(page):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def _told(address: str) -> list[Any]:
    with urlopen(address) as answer:
        told: list[Any] = json.load(answer)
    return told
