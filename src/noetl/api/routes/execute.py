"""Executions begin here, one by one or many at once."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from noetl.api.route import Asked, Nothing, post
from noetl.api.routes.catalog import Version, version_of
from noetl.api.services import ApiServices
from noetl.kernel.errors import InvariantBroken, NoETLError, RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.runtime.start_keys import StartedOnce, StartKey
from noetl.runtime.starting import StartRequest

BATCH_MAX = 1_000
STARTED, DUPLICATE, FAILED = "started", "duplicate", "failed"
IDEMPOTENCY_KEY = "Idempotency-Key"
"""The header that says what `dedup.key` says: who asks again gets the same execution."""


class Dedup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same key within the window (for ever, when there is none) is the same execution."""

    key: str
    window_secs: float | None = None


class Execute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A playbook by path or id; `workload` is another name for `payload`.

    `resource_kind`, `execution_pool` and `trace` are sent by clients of other engines. They mean
    nothing here; everything else that is not known is refused, because it was meant to be heard.
    """

    path: str | None = None
    catalog_id: str | int | None = None
    version: Version = None
    payload: dict[str, Any] | None = None
    workload: dict[str, Any] | None = None
    parent_execution_id: str | None = None
    dedup: Dedup | None = None
    resource_kind: Any = None
    execution_pool: Any = None
    trace: Any = None


class Started(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    status: str = STARTED
    commands_generated: int = 0


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    key = asked.headers.get(IDEMPOTENCY_KEY)
    once = await _start(asked.services, asked.body, key)
    if once.is_duplicate:
        return Started(execution_id=once.execution_id, status=DUPLICATE)
    running = asked.services.coordinator.running.get(once.execution_id)
    commands = 0 if running is None else len(running.state.commands)
    return Started(execution_id=once.execution_id, commands_generated=commands)


async def batch(asked: Asked[Batch, Nothing]) -> BatchStarted:
    """Side by side: their first events share the writes of the log."""
    wanted = asked.body.executions
    keys = _keys(asked.headers, wanted)
    results = await asyncio.gather(
        *(_item(asked.services, index, each, keys[index]) for index, each in enumerate(wanted))
    )
    statuses = Counter(item.status for item in results)
    return BatchStarted(
        count=len(wanted),
        started=statuses[STARTED],
        failed=statuses[FAILED],
        duplicates=statuses[DUPLICATE],
        results=results,
    )


def _keys(headers: Mapping[str, str], wanted: list[Execute]) -> list[str | None]:
    """Each execution of a batch has a key of its own: the batch's, with its place in it."""
    key = headers.get(IDEMPOTENCY_KEY)
    return [
        None if key is None or each.dedup is not None else f"{key}/{index}"
        for index, each in enumerate(wanted)
    ]


async def _item(
    services: ApiServices, index: int, wanted: Execute, header: str | None
) -> BatchItem:
    try:
        once = await _start(services, wanted, header)
    except InvariantBroken:
        raise
    except NoETLError as error:
        return BatchItem(index=index, status=FAILED, code=error.code, error=str(error))
    status = DUPLICATE if once.is_duplicate else STARTED
    return BatchItem(index=index, status=status, execution_id=once.execution_id)


async def _start(services: ApiServices, wanted: Execute, header: str | None) -> StartedOnce:
    parent = wanted.parent_execution_id
    request = StartRequest(
        scope=services.scope,
        path=wanted.path,
        catalog_id=None if wanted.catalog_id is None else str(wanted.catalog_id),
        version=version_of(wanted.version),
        payload={**(wanted.workload or {}), **(wanted.payload or {})},
        parent_execution_id=None if parent is None else ExecutionId(parent),
    )
    key = _key(wanted.dedup, header)
    if key is None:
        return StartedOnce(await services.starter.start(request), is_duplicate=False)
    return await services.starter.start_once(request, key)


def _key(dedup: Dedup | None, header: str | None) -> StartKey | None:
    if dedup is None:
        return None if header is None else StartKey(key=header)
    if header not in (None, dedup.key):
        raise RequestInvalid(
            f"{IDEMPOTENCY_KEY} and dedup.key are two different keys; give one of them"
        )
    return StartKey(key=dedup.key, window_seconds=dedup.window_secs)


_KEYED = (IDEMPOTENCY_KEY,)
ROUTES = (
    post(
        "/api/execute", "Start an execution", execute, body=Execute, gives=Started, headers=_KEYED
    ),
    post(
        "/api/execute/batch",
        "Start many executions",
        batch,
        body=Batch,
        gives=BatchStarted,
        headers=_KEYED,
    ),
)
