"""The tools that talk to servers keep the promises that all tools make."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import web
from nats.js import JetStreamContext

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolCall
from noetl.servers.nats import NatsServer
from noetl.testing.compliance.tool import Look, ToolCompliance
from noetl.tools.http import HttpTool
from noetl.tools.nats import NatsTool
from noetl.tools.postgres import PostgresTool
from tests.tools.nats_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.tool_calls import call, credential, services

SECRET = "hunter2-hunter2"


class Endpoint:
    """Answers, refuses, or keeps its caller waiting; and remembers what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[str] = []
        self.open_requests = 0
        self._never = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers["Idempotency-Key"])
        return web.json_response({"n": 1}, headers={"Date": "fixed"})

    async def refuse(self, request: web.Request) -> web.Response:
        return web.json_response(dict(request.headers), status=401)

    async def wait(self, _request: web.Request) -> web.Response:
        self.open_requests += 1
        try:
            await self._never.wait()
        finally:
            self.open_requests -= 1
        return web.Response()


class TestHttp(ToolCompliance):
    @pytest.fixture
    async def endpoint(self) -> AsyncIterator[Endpoint]:
        endpoint = Endpoint()
        application = web.Application()
        application.add_routes([web.post("/ok", endpoint.answer)])
        application.add_routes([web.get("/no", endpoint.refuse), web.get("/wait", endpoint.wait)])
        # Whoever hangs up ends the request, so that one left open can be seen.
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield endpoint
        await runner.cleanup()

    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[HttpTool]:
        opened = HttpTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def good_call(self, endpoint: Endpoint) -> ToolCall:
        given = {"url": f"{endpoint.url}/ok", "method": "POST", "json": {"a": 1}, "headers": {}}
        return call("http", given | {"params": {"q": "x"}, "response_type": "json"})

    @pytest.fixture
    def failing_call(self, endpoint: Endpoint) -> ToolCall:
        bearer = OpenCredential(name="api", type="bearer", data={"token": SECRET})
        return call("http", {"url": f"{endpoint.url}/no"}, credentials={"": bearer})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self, endpoint: Endpoint) -> ToolCall:
        return call("http", {"url": f"{endpoint.url}/wait"})

    @pytest.fixture
    def left_running(self, endpoint: Endpoint) -> Look:
        async def requests() -> list[str]:
            for _ in range(500):
                if not endpoint.open_requests:
                    return []
                await asyncio.sleep(0.01)
            return [f"{endpoint.open_requests} requests"]

        return requests

    @pytest.fixture
    def keys_received(self, endpoint: Endpoint) -> Look:
        async def keys() -> list[str]:
            return endpoint.keys

        return keys

    def comparable(self, value: Any) -> Any:
        return {**value, "elapsed": None}


@pytest.mark.servers
class TestNats(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[NatsTool]:
        opened = NatsTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    async def stream(self, jetstream: JetStreamContext, fresh_name: str) -> str:
        await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
        return fresh_name

    @pytest.fixture
    def good_call(self, stream: str, nats_credential: OpenCredential) -> ToolCall:
        given = {"operation": "js_publish", "stream": stream, "subject": f"{stream}.a"}
        further = {"data": {"n": 1}, "headers": {"X-A": "b"}}
        return call("nats", given | further, credentials={"": nats_credential})

    @pytest.fixture
    def failing_call(self, nats_server: NatsServer) -> ToolCall:
        wrong = credential("bad", nats_url=nats_server.url, user="noetl", password=SECRET)
        given = {"operation": "kv_get", "bucket": "b", "key": "k"}
        return call("nats", given, credentials={"": wrong})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self, stream: str, nats_credential: OpenCredential) -> ToolCall:
        given = {"operation": "js_consume", "stream": stream, "consumer": "w"}
        further = {"subject": f"{stream}.never", "timeout_ms": 600_000}
        return call("nats", given | further, credentials={"": nats_credential})

    @pytest.fixture
    def left_running(self, tool: NatsTool) -> Look:
        async def subscriptions() -> list[str]:
            clients = tool._connections._kept.values()
            found = [sub.subject for client in clients for sub in client._subs.values()]
            return found[1:]  # the first takes the answers to requests

        return subscriptions

    @pytest.fixture
    def keys_received(self, jetstream: JetStreamContext, stream: str) -> Look:
        async def keys() -> list[str]:
            count = (await jetstream.stream_info(stream)).state.messages
            messages = [await jetstream.get_msg(stream, seq=n) for n in range(1, count + 1)]
            return [(message.headers or {})["Nats-Msg-Id"] for message in messages]

        return keys

    def comparable(self, value: Any) -> Any:
        return {**value, "duplicate": None}


@pytest.mark.servers
class TestPostgres(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[PostgresTool]:
        opened = PostgresTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def stored(self, postgres_dsn: str) -> OpenCredential:
        return OpenCredential(name="pg", type="postgres", data={"dsn": postgres_dsn})

    @pytest.fixture
    def good_call(self, stored: OpenCredential) -> ToolCall:
        given = {"query": "SELECT $1::int + 1 AS n", "params": [1], "pool": {"max_size": 4}}
        return call("postgres", given, credentials={"": stored})

    @pytest.fixture
    def failing_call(self, postgres_dsn: str) -> ToolCall:
        wrong = credential("bad", dsn=postgres_dsn, password=SECRET)
        return call("postgres", {"query": "SELECT 1"}, credentials={"": wrong})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self, stored: OpenCredential) -> ToolCall:
        query = "SELECT pg_sleep(3600)"
        return call("postgres", {"query": query}, credentials={"": stored})

    @pytest.fixture
    def left_running(self, postgres_dsn: str) -> Look:
        running = (
            "SELECT query FROM pg_stat_activity"
            " WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()"
        )

        async def statements() -> list[str]:
            connection = await asyncpg.connect(postgres_dsn)
            try:
                for _ in range(500):
                    found = [str(row["query"]) for row in await connection.fetch(running)]
                    if not found:
                        break
                    await asyncio.sleep(0.01)
            finally:
                await connection.close()
            return found

        return statements
