"""What tests of stages say and see: playbooks that ask a target of ours, and what the log has."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from noetl.bootstrap.engine import Engine
from noetl.domain.events import FrameDispatched, ShardEnqueued
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
ENDING_SECONDS_MAX = 240.0
"""On a busy machine a session of Spark takes a minute to start."""


class Target:
    """Answers once it is open, so that an engine can take its place; remembers what it was told."""

    def __init__(self) -> None:
        self.url = ""
        self.told: Counter[str] = Counter()  # by key
        self.asked: Counter[int] = Counter()
        self.bad: frozenset[int] = frozenset()
        self.bad_at_first: dict[int, int] = {}  # how often each is refused before it is answered
        self.together = 1  # callers that have to be here before the first of them is answered
        self.here = 0  # callers that wait for an answer, and have not hung up
        self.here_max = 0
        self.opens = asyncio.Event()
        self._arrived, self._let_go = 0, 0
        self._comes = asyncio.Condition()

    async def ask(self, request: web.Request) -> web.Response:
        number = int(request.query["number"])
        self.asked[number] += 1
        self.here += 1
        self.here_max = max(self.here_max, self.here)
        try:
            await self.opens.wait()
            await self._meet()
        finally:
            self.here -= 1
        if number in self.bad:
            return web.json_response({"error": "no"}, status=422)
        if self.asked[number] <= self.bad_at_first.get(number, 0):
            return web.json_response({"error": "not now"}, status=503)
        return web.json_response({"square": number * number})

    async def _meet(self) -> None:
        """Whoever makes the number full lets all that wait go."""
        async with self._comes:
            self._arrived += 1
            mine = self._arrived
            if mine - self._let_go >= self.together:
                self._let_go = mine
                self._comes.notify_all()
            await self._comes.wait_for(lambda: self._let_go >= mine)

    async def tell(self, request: web.Request) -> web.Response:
        self.told[request.headers["Idempotency-Key"]] += 1
        return web.json_response({})


@asynccontextmanager
async def serving() -> AsyncIterator[Target]:
    target = Target()
    app = web.Application()
    app.router.add_get("/ask", target.ask)
    app.router.add_post("/tell", target.tell)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        target.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        yield target
    finally:
        target.opens.set()
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


async def said(engine: Engine, execution: ExecutionId) -> Any:
    """The result of an execution that ends well, and that its log proves."""
    ending = await ended(engine, execution)
    assert ending.status == "COMPLETED", ending.error
    assert ending.result is not None
    request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
    proof = await certify(engine.platform.log, engine.platform.snapshots, request)
    assert proof.proved
    return plain_result(value_of(ending.result))


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
    """Who was given frames and shards."""
    events = await events_of(engine, execution)
    given = (each for each in events if isinstance(each, FrameDispatched | ShardEnqueued))
    return Counter(str(each.worker_id) for each in given)
