"""A server as the command line uses it: register, start, follow, steer, look."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from noetl.client.connection import Connection
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Failure
from noetl.domain.log import StoredEvent
from noetl.kernel.errors import LogUnavailable
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.ports.clock import Clock
from noetl.wire.codec import open_stored

TRIES_MAX = 30
PAUSE_SECONDS = 1.0
"""Between tries to reach a server again that went away while we followed an execution."""

_DATA = b"data: "


class RegisteredPlaybook(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    version: int
    catalog_id: str
    is_new: bool = True
    warnings: list[str] = []


class ExecutionShown(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    path: str | None = None
    version: int | None = None
    status: str
    start_time: Instant | None = None
    end_time: Instant | None = None
    duration_seconds: float | None = None
    progress: int = 0
    current_step: str | None = None
    event_count: int = 0
    parent_execution_id: ExecutionId | None = None
    error: str | None = None
    error_kind: str | None = None


class ExecutionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    status: str
    step: StepName | None = None
    result: Any = None
    error: Failure | None = None
    events: int = 0
    duration_seconds: float | None = None


class _Started(msgspec.Struct, frozen=True):
    execution_id: ExecutionId


class _Cancelled(msgspec.Struct, frozen=True):
    status: str
    cancelled_executions: list[ExecutionId] = []


class Explained(msgspec.Struct, frozen=True):
    status: str
    sentences: list[str]


class NoetlClient:
    """Raises the errors that the server raised; trouble with the line is LogUnavailable."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def register(self, text: str | bytes) -> RegisteredPlaybook:
        content = text if isinstance(text, str) else text.decode()
        body = {"content": content}
        return await self._connection.post("/api/catalog/register", body, RegisteredPlaybook)

    async def execute(
        self, path: str, version: int | None = None, payload: dict[str, Any] | None = None
    ) -> ExecutionId:
        body = {"path": path, "version": version, "payload": payload or {}}
        return (await self._connection.post("/api/execute", body, _Started)).execution_id

    async def show(self, execution: ExecutionId) -> ExecutionShown:
        query = {"include_events": "false", "page_size": "1"}
        return await self._connection.get(_one(execution), ExecutionShown, query)

    async def outcome(self, execution: ExecutionId) -> ExecutionOutcome:
        return await self._connection.get(_one(execution, "/outcome"), ExecutionOutcome)

    async def executions(
        self, *, status: str | None = None, path: str | None = None, limit: int = 100
    ) -> list[ExecutionShown]:
        asked = {"status": status, "path": path, "limit": str(limit)}
        query = {name: value for name, value in asked.items() if value is not None}
        return await self._connection.get("/api/executions", list[ExecutionShown], query)

    async def events(
        self, execution: ExecutionId, *, after_version: int = 0, limit: int = 100
    ) -> list[RecordedEvent]:
        """The next page of its log; every event proves itself by its checksum."""
        query = {"after_version": after_version, "limit": limit}
        stored = await self._connection.get(_one(execution, "/log"), list[StoredEvent], query)
        return [open_stored(row) for row in stored]

    async def explain(self, execution: ExecutionId) -> list[str]:
        return (await self.explained(execution)).sentences

    async def explained(self, execution: ExecutionId) -> Explained:
        return await self._connection.get(_one(execution, "/explain"), Explained)

    async def cancel(
        self, execution: ExecutionId, reason: str | None = None, *, cascade: bool = True
    ) -> list[ExecutionId]:
        """Whom it ended; nobody when the execution had ended before."""
        body = {"reason": reason, "cascade": cascade}
        done = await self._connection.post(_one(execution, "/cancel"), body, _Cancelled)
        return done.cancelled_executions

    async def pause(self, execution: ExecutionId, reason: str | None = None) -> None:
        await self._ask(execution, "/pause", {"reason": reason})

    async def resume(self, execution: ExecutionId) -> None:
        await self._ask(execution, "/resume", {})

    async def retry(
        self, execution: ExecutionId, step: StepName | None = None, reason: str | None = None
    ) -> None:
        await self._ask(execution, "/retry", {"step": step, "reason": reason})

    async def until_over(self, execution: ExecutionId) -> ExecutionOutcome:
        shown = await self.show(execution)
        async for _ in self.follow(execution, after_version=shown.event_count):
            pass
        return await self.outcome(execution)

    async def follow(
        self, execution: ExecutionId, *, after_version: int = 0
    ) -> AsyncIterator[RecordedEvent]:
        """Its events as they come, to its end; a server that comes back is asked for the rest."""
        failures = 0
        while True:
            try:
                async for recorded in self._stream(execution, after_version):
                    if recorded is None:
                        return
                    failures = 0
                    after_version = recorded.envelope.stream_version
                    yield recorded
            except LogUnavailable:
                failures += 1
                if failures == TRIES_MAX:
                    raise
                await self._clock.sleep(PAUSE_SECONDS)

    async def _stream(
        self, execution: ExecutionId, after_version: int
    ) -> AsyncIterator[RecordedEvent | None]:
        """None: there is nothing more to come. A stream that just ends is asked for again."""
        request = {
            "params": {"form": "stored", "after_version": after_version},
            "timeout": aiohttp.ClientTimeout(total=None, sock_read=60),
        }
        path = _one(execution, "/stream")
        async with self._connection.opened("GET", path, request) as response:
            if response.status == HTTPStatus.NO_CONTENT:
                yield None
            rest = b""
            async for chunk in response.content.iter_any():
                *blocks, rest = (rest + chunk).split(b"\n\n")
                for block in blocks:
                    for line in block.split(b"\n"):
                        if line.startswith(_DATA):
                            yield open_stored(
                                msgspec.json.decode(line.removeprefix(_DATA), type=StoredEvent)
                            )

    async def _ask(self, execution: ExecutionId, what: str, body: dict[str, Any]) -> None:
        await self._connection.data("POST", _one(execution, what), body=body)


def _one(execution: ExecutionId, what: str = "") -> str:
    return f"/api/executions/{quote(execution, safe='')}{what}"
