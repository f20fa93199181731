"""A loop that failed in the middle is retried: what had happened in the world does not again."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.certificate import certify
from noetl.runtime.effect_entries import counted
from noetl.runtime.executions import Executions
from noetl.runtime.replay import ReplayRequest
from noetl.runtime.starting import StartRequest
from noetl.servers.process import LOOPBACK
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.crash.run_checks import check_read_models

ROWS = 20
BAD = (7, 11)
TASKS = ("reserve", "book")
TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: orders, path: tests/orders}
workload: {url: "", rows: 20}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      spec: {mode: MODE, max_in_flight: 4, frame: {max_rows: 5}}
    tool:
      - {name: reserve, kind: http, method: POST, url: "{{ url }}/reserve",
         json: {number: "{{ iter.number }}"}}
      - {name: book, kind: http, method: POST, url: "{{ url }}/book",
         json: {number: "{{ reserve.data.number }}"}, set: {ctx.last: "{{ output.data.number }}"}}
    next: done
  - step: done
    tool:
      kind: noop
      result:
        booked: "{{ each.results | map(attribute='data.number') | list }}"
        last: "{{ ctx.last }}"
"""


class Shop:
    """Remembers what it was told under which key; some numbers it does not book for now."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.refused = set(BAD)
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Shop"]:
        app = web.Application()
        app.router.add_post("/{task}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            self.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.told[request.headers["Idempotency-Key"]] += 1
        if request.match_info["task"] == "book" and body["number"] in self.refused:
            return web.json_response({"error": "sold out"}, status=409)
        return web.json_response(body)


async def ended(engine: Engine, execution: ExecutionId) -> str:
    ending = await engine.coordinator.ending(execution, 60)
    assert ending is not None
    return ending.status


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_rows_that_had_ended_well_do_not_happen_again(tmp_path: Path, mode: str) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    async with Shop().open() as shop:
        async with open_engine(settings) as engine:
            await engine.playbooks.register(DEFAULT_SCOPE, TEXT.replace("MODE", mode))
            request = StartRequest(
                scope=DEFAULT_SCOPE, path="tests/orders", payload={"url": shop.url}
            )
            execution = await engine.starter.start(request)
            assert await ended(engine, execution) == "FAILED"
            assert shop.told.total() > 0
        async with open_engine(settings) as engine:  # whoever retries is another process
            for _ in range(len(BAD)):
                shop.refused.discard(min(shop.refused))
                await engine.control.retry(DEFAULT_SCOPE, execution)
                status = await ended(engine, execution)
                if status == "COMPLETED":
                    break
            assert status == "COMPLETED"
            await check_ledger(engine, execution, shop)
            ending = await engine.coordinator.ending(execution, 0)
            assert ending is not None
            assert ending.result is not None
            booked = plain_result(value_of(ending.result))
            assert booked == {"booked": list(range(ROWS)), "last": ROWS - 1}
    keys = {f"{execution}/each/1/{row}/{task}/1" for row in range(ROWS) for task in TASKS}
    assert shop.told.keys() == keys
    again = {key for key, times in shop.told.items() if times > 1}
    assert again <= {f"{execution}/each/1/{row}/book/1" for row in BAD}  # refused, then taken


async def check_ledger(engine: Engine, execution: ExecutionId, shop: Shop) -> None:
    platform = engine.platform
    executions = Executions(platform.log, platform.projections, platform.results)
    counts = counted(await executions.effects(DEFAULT_SCOPE, execution))
    assert (counts.fired, counts.repeated, counts.in_doubt) == (shop.told.total(), 0, 0)
    request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
    proof = await certify(platform.log, platform.snapshots, request)
    assert proof.proved
    await check_read_models(platform, execution, proof)
