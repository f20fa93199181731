"""The way that slots come to their server: it notes what they asked and were told, and can keep a
commit on the road."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple, Self

import aiohttp
import msgspec
from aiohttp import web

from noetl.domain.work import FrameReport
from noetl.domain.work_messages import JournalAppend
from noetl.servers.process import LOOPBACK

REPORT, JOURNAL = "/api/work/report", "/api/work/journals/append"
BODY_BYTES_MAX = 1 << 30
_ENDS_HERE = {"Connection", "Content-Length", "Host", "Keep-Alive", "Transfer-Encoding"}


class Commit(NamedTuple):
    """What a slot said of a frame, and what the server answered."""

    report: FrameReport
    status: int


class Gate:
    def __init__(self) -> None:
        self.url = ""
        self.server_url = ""  # where the way leads, once that is known
        self.commits: list[Commit] = []
        self.journaled: set[tuple[int, str]] = set()  # row and task, of the newest stage
        self._keeps_next = False
        self._kept: asyncio.Future[FrameReport] = asyncio.get_running_loop().create_future()
        self._is_open = asyncio.Event()

    def keep_next_commit(self) -> "asyncio.Future[FrameReport]":
        """Done when one has come, which then waits for `let_go`; those after it pass."""
        self._keeps_next = True
        self._kept = asyncio.get_running_loop().create_future()
        self._is_open.clear()
        return self._kept

    def let_go(self) -> None:
        self._is_open.set()

    def answers_to(self, report: FrameReport) -> list[int]:
        return [each.status for each in self.commits if each.report == report]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Self]:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._pass)
        # A slot that dies hangs up, and the server has to hear of it.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        connections = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connections, auto_decompress=False) as session:
            self._session = session
            try:
                site = web.TCPSite(runner, LOOPBACK, 0)
                await site.start()
                self.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
                yield self
            finally:
                self.let_go()
                await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == JOURNAL:
            return await self._noted(request, body)
        if request.path != REPORT:
            return await self._asked(request, body)
        # On the road it arrives, whatever becomes of the slot meanwhile.
        return await asyncio.shield(asyncio.create_task(self._reported(request, body)))

    async def _noted(self, request: web.Request, body: bytes) -> web.Response:
        answer = await self._asked(request, body)
        if answer.status == HTTPStatus.OK:
            entries = msgspec.json.decode(body, type=JournalAppend).entries
            self.journaled |= {(each.row, each.call.task) for each in entries if each.call}
        return answer

    async def _reported(self, request: web.Request, body: bytes) -> web.Response:
        report = msgspec.json.decode(body, type=FrameReport)
        if self._keeps_next:
            self._keeps_next = False
            self._kept.set_result(report)
            await self._is_open.wait()
        answer = await self._asked(request, body)
        self.commits.append(Commit(report, answer.status))
        return answer

    async def _asked(self, request: web.Request, body: bytes) -> web.Response:
        headers = {name: text for name, text in request.headers.items() if name not in _ENDS_HERE}
        address = f"{self.server_url}{request.rel_url}"
        asked = self._session.request(request.method, address, data=body, headers=headers)
        async with asked as answer:
            kept = {name: text for name, text in answer.headers.items() if name not in _ENDS_HERE}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)
