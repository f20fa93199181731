"""Executions begin here, one by one or many at once."""

import asyncio
from collections import Counter
from typing import Annotated, Any

import msgspec

from noetl.api.route import Asked, Nothing, post
from noetl.api.routes.catalog import Version, version_of
from noetl.api.services import ApiServices
from noetl.kernel.errors import InvariantBroken, NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.runtime.start_keys import StartedOnce, StartKey
from noetl.runtime.starting import StartRequest

BATCH_MAX = 1_000
STARTED, DUPLICATE, FAILED = "started", "duplicate", "failed"


class Dedup(msgspec.Struct, frozen=True, kw_only=True):
    """The same key within the window (for ever, when there is none) is the same execution."""

    key: str
    window_secs: float | None = None


class Execute(msgspec.Struct, frozen=True, kw_only=True):
    """A playbook by path or id; `workload` is another name for `payload`."""

    path: str | None = None
    catalog_id: str | int | None = None
    version: Version = None
    payload: dict[str, Any] | None = None
    workload: dict[str, Any] | None = None
    parent_execution_id: str | None = None
    dedup: Dedup | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    status: str = STARTED
    commands_generated: int = 0


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    executions: Annotated[list[Execute], msgspec.Meta(max_length=BATCH_MAX)]


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    index: int
    status: str
    execution_id: ExecutionId | None = None
    code: str | None = None
    error: str | None = None


class BatchStarted(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    started: int
    failed: int
    duplicates: int = 0
    results: list[BatchItem]


async def execute(asked: Asked[Execute, Nothing]) -> Started:
    once = await _start(asked.services, asked.body)
    if once.is_duplicate:
        return Started(execution_id=once.execution_id, status=DUPLICATE)
    running = asked.services.coordinator.running.get(once.execution_id)
    commands = 0 if running is None else len(running.state.commands)
    return Started(execution_id=once.execution_id, commands_generated=commands)


async def batch(asked: Asked[Batch, Nothing]) -> BatchStarted:
    """Side by side: their first events share the writes of the log."""
    wanted = asked.body.executions
    results = await asyncio.gather(
        *(_item(asked.services, index, each) for index, each in enumerate(wanted))
    )
    statuses = Counter(item.status for item in results)
    return BatchStarted(
        count=len(wanted),
        started=statuses[STARTED],
        failed=statuses[FAILED],
        duplicates=statuses[DUPLICATE],
        results=results,
    )


async def _item(services: ApiServices, index: int, wanted: Execute) -> BatchItem:
    try:
        once = await _start(services, wanted)
    except InvariantBroken:
        raise
    except NoETLError as error:
        return BatchItem(index=index, status=FAILED, code=error.code, error=str(error))
    status = DUPLICATE if once.is_duplicate else STARTED
    return BatchItem(index=index, status=status, execution_id=once.execution_id)


async def _start(services: ApiServices, wanted: Execute) -> StartedOnce:
    parent = wanted.parent_execution_id
    request = StartRequest(
        scope=services.scope,
        path=wanted.path,
        catalog_id=None if wanted.catalog_id is None else str(wanted.catalog_id),
        version=version_of(wanted.version),
        payload={**(wanted.workload or {}), **(wanted.payload or {})},
        parent_execution_id=None if parent is None else ExecutionId(parent),
    )
    dedup = wanted.dedup
    if dedup is None:
        return StartedOnce(await services.starter.start(request), is_duplicate=False)
    key = StartKey(key=dedup.key, window_seconds=dedup.window_secs)
    return await services.starter.start_once(request, key)


ROUTES = (
    post("/api/execute", "Start an execution", execute, body=Execute, gives=Started),
    post("/api/execute/batch", "Start many executions", batch, body=Batch, gives=BatchStarted),
)
