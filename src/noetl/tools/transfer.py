"""Copy rows from one place to another, chunk by chunk, without holding them all.

A SQL target gets all rows in one transaction, so a transfer that fails leaves nothing behind.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from noetl.domain.playbook.wording import choices, shown
from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.templates.secret import scrub
from noetl.tools.credential_fields import secrets_of
from noetl.tools.failures import failed
from noetl.tools.registry import Tools
from noetl.tools.transfer_http import HttpEndpoints
from noetl.tools.transfer_plan import (
    Endpoints,
    Place,
    Row,
    Source,
    Target,
    TransferPlan,
    columns_of,
    field_of,
    kind_of,
    last_by_key,
    transfer_plan,
)

KINDS = ("postgres", "sqlite", "duckdb", "http")

_READING_METHODS = ("", "GET", "HEAD")


class TransferTool:
    waits = False

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._tools = Tools(services)
        self._endpoints: dict[str, Endpoints] = {"http": HttpEndpoints(self._tools)}

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        """To put the same rows in the same place again changes nothing; to add them does."""
        source = parameters.get("source")
        method = str(source.get("method") or "") if isinstance(source, Mapping) else ""
        adds = parameters.get("mode") not in ("replace", "upsert")
        return (
            adds
            or kind_of(parameters.get("target")) == "http"
            or method.upper() not in _READING_METHODS
        )

    async def run(self, call: ToolCall) -> ToolResult:
        plan = transfer_plan(call)
        sources, targets = self._endpoints_of(plan.source), self._endpoints_of(plan.target)
        try:
            async with (
                asyncio.timeout(call.timeout_seconds),
                sources.open_source(plan.source) as source,
                targets.open_target(plan.target, plan) as target,
            ):
                value = await _transferred(plan, source, target)
        except TimeoutError:
            raise failed(
                "timeout",
                f"the transfer was not done after {call.timeout_seconds:g} seconds; SQL targets are"
                " as they were: give the task more `timeout`, or transfer less at once",
            ) from None
        except ToolFailed as error:
            raise _scrubbed(error, call) from None  # what it came from may hold a password
        return ToolResult(value=value)

    async def close(self) -> None:
        await self._tools.close()

    def _endpoints_of(self, place: Place) -> Endpoints:
        kind = place.kind
        if kind not in KINDS:
            raise place.mistake(f"cannot be {shown(kind)!r}; use {choices(KINDS)}")
        if kind not in self._endpoints:
            try:
                module = importlib.import_module(f"noetl.tools.transfer_{kind}")
            except ModuleNotFoundError as error:
                raise place.mistake(
                    f"needs the package {error.name!r}; pip install 'noetl[{kind}]'"
                ) from error
            self._endpoints[kind] = cast(Endpoints, module.endpoints(self._services))
        return self._endpoints[kind]


async def _transferred(plan: TransferPlan, source: Source, target: Target) -> dict[str, Any]:
    columns: tuple[str, ...] = tuple(plan.mapping or ())
    row_count = chunk_count = 0
    async for rows in _mapped(plan, source):
        columns = columns or columns_of(rows)
        _check_columns(rows, columns, row_count)
        chosen = last_by_key(rows, plan.key) if plan.mode == "upsert" else rows
        await target.write(chosen, columns)
        row_count += len(rows)
        chunk_count += 1
    return {
        "status": "success",
        "direction": plan.direction,
        "source_type": plan.source.kind,
        "target_type": plan.target.kind,
        "mode": plan.mode,
        "rows_transferred": row_count,
        "chunks_processed": chunk_count,
        "target_table": plan.target.text("table"),
        "columns": list(columns),
    }


async def _mapped(plan: TransferPlan, source: Source) -> AsyncIterator[list[Row]]:
    mapping = plan.mapping
    async for rows in source.chunks(plan.chunk_rows):
        if mapping is None:
            yield rows
        else:
            yield [
                {column: field_of(row, field) for column, field in mapping.items()} for row in rows
            ]


def _check_columns(rows: list[Row], columns: tuple[str, ...], before: int) -> None:
    """A field that only a later row has must not get lost."""
    known = set(columns)
    for number, row in enumerate(rows, start=before + 1):
        if not row.keys() <= known:
            further = sorted(row.keys() - known)
            raise failed(
                "schema",
                f"row {number} has the field {shown(further[0])!r}, which the first rows did not"
                " have; say with `mapping` which fields are wanted",
            )


def _scrubbed(error: ToolFailed, call: ToolCall) -> ToolFailed:
    failure, hidden = error.failure, secrets_of(call)
    return failed(
        failure.kind,
        str(scrub(failure.message, hidden)),
        code=failure.code,
        retryable=failure.retryable,
        detail=scrub(failure.detail, hidden),
        http=scrub(error.http, hidden),
        pg=scrub(error.pg, hidden),
    )
