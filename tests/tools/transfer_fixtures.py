"""Places to transfer rows between: a SQLite file, an HTTP endpoint, a database."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import web

from noetl.domain.credential import OpenCredential
from noetl.tools.transfer import TransferTool
from tests.tools.tool_calls import call, credential, services

Run = Callable[..., Awaitable[Any]]

POSTS = [
    {"userId": 1, "id": number, "title": f"title {number}", "author": {"name": "Ada"}}
    for number in range(1, 26)
]


@pytest.fixture
async def transfer_tool(tmp_path: Path) -> AsyncIterator[TransferTool]:
    opened = TransferTool(services(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
def run_transfer(transfer_tool: TransferTool) -> Run:
    async def run_one(source: Any, target: Any, **parameters: Any) -> Any:
        credentials = parameters.pop("credentials", {})
        given = {"source": source, "target": target, **parameters}
        return (await transfer_tool.run(call("transfer", given, credentials=credentials))).value

    return run_one


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite file with 25 rows in one table and an empty table with constraints."""
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE numbers (id INTEGER, word TEXT, half REAL, raw BLOB)")
        rows = [(number, f"word {number}", number / 2, b"\x00\xff") for number in range(25)]
        connection.executemany("INSERT INTO numbers VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE TABLE taken (id INTEGER PRIMARY KEY, word TEXT NOT NULL)")
        connection.execute("INSERT INTO taken VALUES (1, 'before'), (900, 'stays')")
    return path


def taken(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, word FROM taken ORDER BY id").fetchall()


class Received:
    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[Any] = []
        self.keys: list[str] = []


@pytest.fixture
async def endpoint() -> AsyncIterator[Received]:
    received = Received()

    async def give(_request: web.Request) -> web.Response:
        return web.json_response({"page": {"items": POSTS}})

    async def plain(_request: web.Request) -> web.Response:
        return web.json_response(POSTS)

    async def late(_request: web.Request) -> web.Response:
        return web.json_response([*POSTS, {"id": 26, "extra": True}])

    async def take(request: web.Request) -> web.Response:
        received.bodies.append(await request.json())
        received.keys.append(request.headers["Idempotency-Key"])
        return web.json_response({"taken": True}, status=201)

    application = web.Application()
    application.add_routes([web.get("/paged", give), web.get("/posts", plain)])
    application.add_routes([web.get("/late", late), web.post("/posts", take)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    received.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield received
    await runner.cleanup()


@pytest.fixture
async def sql(postgres_dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(postgres_dsn)
    yield connection
    await connection.close()


@pytest.fixture
def pg_local(postgres_dsn: str) -> OpenCredential:
    return credential("pg_local", connection_string=postgres_dsn)
