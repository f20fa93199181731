"""What every engine keeps of a stage: the same playbooks, the same answers, wherever rows run."""

import asyncio
from abc import ABC
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from noetl.bootstrap.engine import Engine
from noetl.domain.events import FrameDispatched, ShardEnqueued, ShardFailed
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.certificate import certify
from noetl.runtime.endings import Ending
from noetl.runtime.replay import ReplayRequest
from noetl.runtime.starting import StartRequest
from noetl.servers.process import LOOPBACK
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from noetl.wire.codec import open_stored

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: stage, path: tests/stage}\n"
ENDING_SECONDS_MAX = 120.0

LOOP = """
workload: {url: "", rows: 200}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: parallel, max_in_flight: 8, frame: {max_rows: 20, row_concurrency: 4, PROCESS}}
    spec: {policy: {failure: {mode: FAILURE}}}
    tool:
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.number }}"},
         timeout: 120}
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.number }}"}, set: {ctx.last: "{{ iter.number }}"}}
      - {name: answer, kind: noop, result: {square: "{{ ask.data.square }}"}}
    next: done
  - step: done
    tool:
      kind: noop
      result:
        squares: "{{ each.results | map(attribute='square') | list }}"
        stats: "{{ each.stats }}"
        last: "{{ ctx.last }}"
"""

SHARDS = """
workload: {url: "", rows: 20}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: fanout, max_in_flight: 4, fanout: {max_shard_retries: 1}}
    tool:
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.number }}"}}
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.number }}"},
         timeout: 120}
    next: {arcs: [{step: done, when: "{{ fanin.status == 'partial' }}"}]}
  - step: done
    tool:
      kind: python
      input: {rows: "{{ each.results }}", fanin: "{{ each.fanin }}"}
      code: |
        squares = [None if row is None else row["data"]["square"] for row in rows]
        result = {"squares": squares, "fanin": fanin}
"""


class Target:
    """Answers once it is open, so that an engine can take its place; remembers what it was told."""

    def __init__(self) -> None:
        self.url = ""
        self.told: Counter[str] = Counter()
        self.bad: frozenset[int] = frozenset()
        self.pause_seconds = 0.0
        self.opens = asyncio.Event()

    async def ask(self, request: web.Request) -> web.Response:
        await self.opens.wait()
        await asyncio.sleep(self.pause_seconds)
        number = int(request.query["number"])
        if number in self.bad:
            return web.json_response({"error": "no"}, status=422)
        return web.json_response({"square": number * number})

    async def tell(self, request: web.Request) -> web.Response:
        self.told[request.headers["Idempotency-Key"]] += 1
        return web.json_response({})


@asynccontextmanager
async def serving() -> AsyncIterator[Target]:
    target = Target()
    app = web.Application()
    app.router.add_get("/ask", target.ask)
    app.router.add_post("/tell", target.tell)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        target.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        yield target
    finally:
        await runner.cleanup()


async def started(engine: Engine, text: str, **payload: Any) -> ExecutionId:
    entry = (await engine.playbooks.register(DEFAULT_SCOPE, HEAD + text)).entry
    request = StartRequest(
        scope=DEFAULT_SCOPE, path=entry.path, version=entry.version, payload=payload
    )
    return await engine.starter.start(request)


async def ended(engine: Engine, execution: ExecutionId) -> Ending:
    ending = await engine.coordinator.ending(execution, ENDING_SECONDS_MAX)
    assert ending is not None, "it has not ended in time"
    return ending


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(round(ENDING_SECONDS_MAX / 0.05)):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it has not come to pass")


async def events_of(engine: Engine, execution: ExecutionId) -> list[Any]:
    found: list[Any] = []
    while page := await engine.platform.log.read(execution, after_version=len(found), limit=500):
        found += [open_stored(stored).event for stored in page]
    return found


async def workers_of(engine: Engine, execution: ExecutionId) -> Counter[str]:
    """Who was given frames."""
    events = await events_of(engine, execution)
    given = (each for each in events if isinstance(each, FrameDispatched | ShardEnqueued))
    return Counter(str(each.worker_id) for each in given)


class StageSuite(ABC):
    engine_name: str
    """As a loop writes it."""

    def text(self, *, process: str = "row", failure: str = "fail_fast") -> str:
        chosen = LOOP.replace("ENGINE", self.engine_name).replace("PROCESS", f"process: {process}")
        return chosen.replace("FAILURE", failure)

    def check_workers(self, workers: Counter[str]) -> None:
        """The engine that was asked for did the work."""
        assert workers

    async def test_rows_come_back_in_order_and_effects_happen_once(self, engine: Engine) -> None:
        async with serving() as target:
            execution = await started(engine, self.text(), url=target.url, rows=400)
            await self.open_when_begun(engine, target, execution)
            ending = await ended(engine, execution)
        assert ending.status == "COMPLETED", ending.error
        assert ending.result is not None
        said = plain_result(value_of(ending.result))
        assert said["squares"] == [number * number for number in range(400)]
        assert (said["stats"]["succeeded"], said["stats"]["failed"]) == (400, 0)
        assert said["last"] == 399
        assert set(target.told.values()) == {1}
        assert len(target.told) == 400
        self.check_workers(await workers_of(engine, execution))
        request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
        proof = await certify(engine.platform.log, engine.platform.snapshots, request)
        assert proof.proved

    async def test_a_failed_row_ends_the_loop_or_is_counted(self, engine: Engine) -> None:
        async with serving() as target:
            target.bad = frozenset({5, 77})
            target.opens.set()
            counted = await started(engine, self.text(failure="continue"), url=target.url, rows=100)
            ending = await ended(engine, counted)
            assert ending.status == "COMPLETED", ending.error
            assert ending.result is not None
            said = plain_result(value_of(ending.result))
            assert (said["stats"]["succeeded"], said["stats"]["failed"]) == (98, 2)
            failing = await started(engine, self.text(), url=target.url, rows=100)
            ending = await ended(engine, failing)
        assert ending.status == "FAILED"
        assert ending.error is not None
        assert ending.error.kind == "client_error"

    async def test_shards_are_tried_alone_and_come_together(self, engine: Engine) -> None:
        text = SHARDS.replace("ENGINE", self.engine_name)
        async with serving() as target:
            target.bad = frozenset({5, 17})
            execution = await started(engine, text, url=target.url, rows=20)
            await self.open_when_begun(engine, target, execution)
            ending = await ended(engine, execution)
        assert ending.status == "COMPLETED", ending.error
        assert ending.result is not None
        said = plain_result(value_of(ending.result))
        assert (said["fanin"]["status"], said["fanin"]["done"]) == ("partial", 18)
        assert said["squares"] == [
            None if number in (5, 17) else number * number for number in range(20)
        ]
        events = await events_of(engine, execution)
        tries = Counter(each.shard_id for each in events if isinstance(each, ShardFailed))
        assert tries == {"5": 2, "17": 2}
        assert set(target.told.values()) == {1}, "what a try has told is not told again"
        self.check_workers(await workers_of(engine, execution))
        request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
        proof = await certify(engine.platform.log, engine.platform.snapshots, request)
        assert proof.proved

    async def test_a_cancelled_execution_leaves_nothing_running(self, engine: Engine) -> None:
        async with serving() as target:
            target.pause_seconds = 0.2
            execution = await started(engine, self.text(), url=target.url, rows=5_000)
            await self.open_when_begun(engine, target, execution)
            await eventually(lambda: len(target.told) >= 20)
            await engine.control.cancel(DEFAULT_SCOPE, execution)
            assert (await ended(engine, execution)).status == "CANCELLED"
            await self.wait_until_idle(engine, execution)
            told = len(target.told)
            await asyncio.sleep(1.0)
            assert len(target.told) == told

    async def open_when_begun(self, engine: Engine, target: Target, execution: ExecutionId) -> None:
        await eventually(lambda: self.has_begun(engine, execution))
        target.opens.set()

    def has_begun(self, engine: Engine, execution: ExecutionId) -> bool:
        """Whether the engine works on a stage."""
        del execution
        return bool(engine.coordinator.seats.all())

    async def wait_until_idle(self, engine: Engine, execution: ExecutionId) -> None:
        """Until the engine has let go of the execution's rows."""
        del engine, execution
        await asyncio.sleep(3.0)

    async def test_two_executions_share_the_engine(self, engine: Engine) -> None:
        async with serving() as target:
            target.opens.set()
            both = [await started(engine, self.text(), url=target.url, rows=200) for _ in range(2)]
            endings = [await ended(engine, each) for each in both]
        assert [ending.status for ending in endings] == ["COMPLETED", "COMPLETED"]
        assert len(target.told) == 400


class SparkStageSuite(StageSuite):
    engine_name = "spark"

    def check_workers(self, workers: Counter[str]) -> None:
        assert any(worker.startswith("spark/") for worker in workers), workers

    def has_begun(self, engine: Engine, execution: ExecutionId) -> bool:
        """A slot has come for its stage."""
        served = [seat.worker.serves for seat in engine.coordinator.seats.all()]
        return any(each is not None and each.execution_id == execution for each in served)

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
