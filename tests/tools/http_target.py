"""A real HTTP server on a free port that remembers what it was asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from noetl.servers.process import LOOPBACK


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    query: list[tuple[str, str]]
    body: bytes
    raw_query: str


@dataclass
class Target:
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    hanging: int = 0  # requests that wait for an answer that never comes
    released: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(
            Seen(
                request.method,
                request.path,
                {name.lower(): text for name, text in request.headers.items()},
                list(request.query.items()),
                await request.read(),
                request.rel_url.raw_query_string,
            )
        )
        if request.path == "/hang":
            await self._hang()
        if request.path == "/cut":
            assert request.transport is not None
            request.transport.abort()
        return web.Response(**self.answers.get(request.path, {"text": "ok"}))

    async def until_hanging(self, count: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.hanging == count)

    async def _hang(self) -> None:
        await self._count(+1)
        try:
            await self.released.wait()
        finally:
            await self._count(-1)

    async def _count(self, step: int) -> None:
        self.hanging += step
        async with self.changed:
            self.changed.notify_all()


@asynccontextmanager
async def serving() -> AsyncIterator[Target]:
    target = Target()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", target.answer)
    # A handler ends when its client goes away, so that tests can see that it did.
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    target.url = f"http://{host}:{port}"
    try:
        yield target
    finally:
        target.released.set()
        await runner.cleanup()
