"""Executions of a server: asked for over HTTP, followed by its stream of events."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from noetl.bootstrap.home import Holder
from noetl.bootstrap.running import system_clock
from noetl.cli.runs import RECALLED_EVENTS_MAX, Follower, GoesOn, Runs
from noetl.client.connection import Connection
from noetl.client.http_client import NoetlClient
from noetl.kernel.errors import StateRefuses
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.runtime.executions import Outcome


@asynccontextmanager
async def server_client(holder: Holder) -> AsyncIterator[NoetlClient]:
    connection = Connection(holder.address or "", holder.api_key)
    try:
        yield NoetlClient(connection, system_clock())
    finally:
        await connection.close()


@asynccontextmanager
async def server_runs(holder: Holder, follower: Follower) -> AsyncIterator[Runs]:
    async with server_client(holder) as client:
        yield ServerRuns(client, follower)


class ServerRuns:
    goes_on = GoesOn("the server goes on with it", "executions watch")
    is_server = True

    def __init__(self, client: NoetlClient, follower: Follower) -> None:
        self._client = client
        self._follower = follower
        self._followed_after = 0  # the last event that is old news

    async def has_ended_since(self, execution: ExecutionId, moment: Instant) -> bool:
        ended_at = (await self._client.show(execution)).end_time
        return ended_at is not None and ended_at >= moment

    async def register(self, text: bytes) -> tuple[str, int]:
        registered = await self._client.register(text)
        return registered.path, registered.version

    async def start(self, path: str, version: int | None, payload: dict[str, Any]) -> ExecutionId:
        return await self._client.execute(path, version, payload)

    async def cancel(
        self, execution: ExecutionId, reason: str | None, *, cascade: bool = True
    ) -> list[ExecutionId]:
        cancelled = await self._client.cancel(execution, reason, cascade=cascade)
        if not cancelled:
            raise StateRefuses(execution, "is over and cannot be cancelled")
        return cancelled

    async def pause(self, execution: ExecutionId, reason: str | None) -> None:
        await self._client.pause(execution, reason)

    async def resume(self, execution: ExecutionId) -> None:
        await self._catch_up(execution)
        await self._client.resume(execution)

    async def retry(
        self, execution: ExecutionId, step: StepName | None, reason: str | None
    ) -> None:
        await self._catch_up(execution)
        await self._client.retry(execution, step, reason)

    async def _catch_up(self, execution: ExecutionId) -> None:
        while self._followed_after < RECALLED_EVENTS_MAX:
            after = self._followed_after
            page = await self._client.events(execution, after_version=after, limit=PAGE_EVENTS_MAX)
            self._follower.recall(page)
            self._followed_after = page[-1].envelope.stream_version if page else after
            if len(page) < PAGE_EVENTS_MAX:
                return
        self._followed_after = (await self._client.show(execution)).event_count

    async def until_over(self, execution: ExecutionId) -> None:
        after = self._followed_after
        async for recorded in self._client.follow(execution, after_version=after):
            self._follower([recorded])

    def hurry(self) -> None:
        pass  # nothing is in our hands

    async def leave(self, _execution: ExecutionId) -> bool:
        return False

    def also_open(self) -> list[ExecutionId]:
        return []

    async def outcome(self, execution: ExecutionId) -> Outcome:
        told = await self._client.outcome(execution)
        return msgspec.convert(told, Outcome, from_attributes=True)
