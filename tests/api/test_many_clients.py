"""A thousand clients at once: every request is taken, none is our fault."""

import asyncio
from collections import Counter

import aiohttp

from tests.api.running import HELLO, Api

CLIENTS = 1_000


async def test_a_thousand_clients_start_executions_at_once(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    body = {"path": "tests/hello"}

    async with aiohttp.ClientSession(api.address, connector=connector) as session:

        async def submit() -> tuple[int, str]:
            async with session.post("/api/execute", json=body) as response:
                answer = await response.json(content_type=None)
                return response.status, answer.get("execution_id", "")

        answers = await asyncio.gather(*(submit() for _ in range(CLIENTS)))

    assert Counter(status for status, _ in answers) == {200: CLIENTS}
    assert len({execution for _, execution in answers}) == CLIENTS
