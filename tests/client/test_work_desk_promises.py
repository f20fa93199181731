"""The desk over HTTP keeps every promise of a desk: a server asks ours, whose time we hold."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.secret_key import internal_key
from noetl.bootstrap.serving import serve
from noetl.bootstrap.settings import Settings
from noetl.client.connection import Connection
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.ports.work_desk import WorkDesk
from noetl.testing.compliance.work_desk import WorkDeskCompliance
from noetl.testing.desk_office import Office
from tests.unit.runtime.desk_scene import ATTEMPTS_MAX, LEASE_SECONDS, Scene


class RemoteOffice:
    """What is asked goes over HTTP; whatever else happens, happens where the executions are."""

    lease_seconds = LEASE_SECONDS
    attempts_max = ATTEMPTS_MAX

    def __init__(self, scene: Scene, desk: WorkDesk) -> None:
        self.desk = desk
        self._scene = scene

    async def start(self, playbook: str, **payload: Any) -> ExecutionId:
        return await self._scene.start(playbook, **payload)

    async def cancel(self, execution: ExecutionId) -> None:
        await self._scene.cancel(execution)

    async def pass_time(self, seconds: float) -> None:
        await self._scene.pass_time(seconds)

    async def events(self, execution: ExecutionId) -> list[RecordedEvent]:
        return await self._scene.events(execution)


class TestOverHttp(WorkDeskCompliance):
    @pytest.fixture
    async def office(self, settings: Settings) -> AsyncIterator[Office]:
        scene = Scene()
        async with open_engine(settings, has_worker=False) as engine:
            remote = msgspec.structs.replace(engine, desk=scene.desk)
            address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            serving = asyncio.create_task(serve(remote, "127.0.0.1", 0, address.set_result))
            key = internal_key(Path(settings.home), settings.secret_key)
            connection = Connection(await address, key)
            yield RemoteOffice(scene, HttpWorkDesk(connection))
            await connection.close()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await scene.coordinator.drain()
