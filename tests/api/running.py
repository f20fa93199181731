"""A real engine behind a real server on a free port, and a client that speaks to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.secret_key import internal_key
from noetl.bootstrap.serving import serve
from noetl.bootstrap.settings import Settings

HELLO = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: hello, path: tests/hello, description: Says hello}
workload: {who: you, times: 3, loud: false}
workflow:
  - step: start
    tool: {kind: noop}
    next: [{step: second}]
  - step: second
    tool: {kind: noop}
    set: {ctx.greeted: "{{ workload.who }}"}
"""
FAILING = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: failing, path: tests/failing}
workflow:
  - step: start
    tool: {kind: shell, command: "exit 3"}
"""
WAITING = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waiting, path: tests/waiting}
workflow:
  - step: start
    tool: {kind: shell, command: "sleep 60"}
"""


@dataclass
class Answer:
    status: int
    headers: Any
    body: Any


@dataclass
class Api:
    """Requests as a client makes them."""

    engine: Engine
    address: str
    session: aiohttp.ClientSession

    @property
    def internal_key(self) -> str:
        """What workers of this home show."""
        settings = self.engine.settings
        return internal_key(Path(settings.home), settings.secret_key)

    @property
    def as_worker(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.internal_key}"}

    async def call(self, method: str, path: str, **request: Any) -> Answer:
        async with self.session.request(method, path, **request) as response:
            is_json = "json" in response.content_type
            body = await (response.json(content_type=None) if is_json else response.text())
            return Answer(response.status, response.headers, body)

    async def get(self, path: str, /, **query: Any) -> Any:
        answer = await self.call("GET", path, params=query)
        assert answer.status == 200, answer
        return answer.body

    async def post(self, path: str, /, **body: Any) -> Any:
        answer = await self.call("POST", path, json=body)
        assert answer.status == 200, answer
        return answer.body

    async def start(self, text: str = HELLO, **payload: Any) -> str:
        registered = await self.post("/api/catalog/register", content=text)
        started = await self.post("/api/execute", path=registered["path"], payload=payload)
        return str(started["execution_id"])

    async def ended(self, execution: str) -> Any:
        """The execution once it is over, told by its stream."""
        async with self.session.get(f"/api/executions/{execution}/stream") as response:
            await response.read()
        return await self.get(f"/api/executions/{execution}")


async def _served(engine: Engine, address: "asyncio.Future[str]") -> None:
    try:
        await serve(engine, "127.0.0.1", 0, address.set_result)
    finally:
        if not address.done():
            address.set_exception(AssertionError("the server stopped before it was ready"))


@asynccontextmanager
async def running_api(
    settings: Settings, headers: dict[str, str] | None = None, *, has_worker: bool = True
) -> AsyncIterator[Api]:
    async with open_engine(settings, has_worker=has_worker) as engine:
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(_served(engine, address))
        await address
        async with aiohttp.ClientSession(address.result(), headers=headers) as session:
            yield Api(engine, address.result(), session)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
