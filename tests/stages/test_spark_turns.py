"""Two stages on a Spark with room for one: the later one need not wait for the other's end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameCommitted
from noetl.kernel.ids import ExecutionId
from noetl.runtime.endings import Ending
from noetl.runtime.starting import StartRequest
from noetl.servers.process import LOOPBACK
from noetl.wire.codec import open_stored

pytestmark = pytest.mark.servers

PATH = "tests/turns"
TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: turns, path: tests/turns}
workload: {url: "", rows: 0}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: spark
      spec: {mode: parallel, max_in_flight: 8, frame: {max_rows: 20, row_concurrency: 1}}
    tool: {kind: http, method: GET, url: "{{ url }}/{{ iter.number }}"}
"""
ROW_SECONDS = 0.5
MANY, FEW = 800, 4


class Target:
    """Slow, until it is told that it need not be."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.may_hurry = asyncio.Event()
        self.url = ""

    async def answer(self, _request: web.Request) -> web.Response:
        self.has_begun.set()
        waiting = asyncio.ensure_future(self.may_hurry.wait())
        await asyncio.wait([waiting], timeout=ROW_SECONDS)
        waiting.cancel()
        return web.json_response({})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_get("/{number}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        self.url = site.name
        try:
            yield
        finally:
            await runner.cleanup()


async def start(engine: Engine, target: Target, rows: int) -> ExecutionId:
    payload = {"url": target.url, "rows": rows}
    request = StartRequest(scope=engine.settings.scope, path=PATH, payload=payload)
    return await engine.starter.start(request)


async def end_of(engine: Engine, execution: ExecutionId) -> Ending:
    ending = await engine.coordinator.ending(execution, 120)
    assert ending is not None
    return ending


async def slots_of(engine: Engine, execution: ExecutionId) -> set[str]:
    """Those that have brought frames."""
    stored = await engine.platform.log.read(execution, after_version=0, limit=1_000)
    events = [open_stored(each).event for each in stored]
    return {each.worker_id for each in events if isinstance(each, FrameCommitted)}


async def test_a_later_stage_has_its_frames_before_an_earlier_one_ends(tmp_path: Path) -> None:
    settings = Settings(
        home=str(tmp_path / "home"),
        stage_engine="spark",
        spark_master="local[2,4]",
        spark_slots=8,
        spark_memory_mb=512,
    )
    target = Target()
    async with target.serving(), open_engine(settings) as engine:
        await engine.playbooks.register(settings.scope, TEXT)
        first = await start(engine, target, MANY)
        await target.has_begun.wait()
        second = await start(engine, target, FEW)
        assert (await end_of(engine, second)).status == "COMPLETED"
        running = await engine.coordinator.load(first)
        assert running.state.execution.status == "RUNNING"
        target.may_hurry.set()
        assert (await end_of(engine, first)).status == "COMPLETED"
        assert all(slot.startswith("spark/") for slot in await slots_of(engine, second))
