"""HTTP as an end of a transfer, through the http tool: one answer's rows, or one post a chunk."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from noetl.domain.playbook.wording import shown
from noetl.ports.tool import ToolCall
from noetl.tools.failures import failed
from noetl.tools.registry import Tools
from noetl.tools.sql_results import plain
from noetl.tools.transfer_plan import Place, Row, Source, Target, TransferPlan, field_of

_NOT_FOR_HTTP = ("type", "kind", "tool", "auth", "credential", "data_path", "mapping", "mode")


class HttpEndpoints:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    @asynccontextmanager
    async def open_source(self, place: Place) -> AsyncIterator[Source]:
        result = await self._tools.get("http").run(_http_call(place, {}))
        yield _Answer(_rows(place, result.value["data"]))

    @asynccontextmanager
    async def open_target(self, place: Place, plan: TransferPlan) -> AsyncIterator[Target]:
        if plan.mode != "append":
            raise place.mistake(f"takes no mode {plan.mode!r} over HTTP; use append")
        yield _Posts(self._tools, place)


class _Answer:
    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    async def chunks(self, size: int) -> AsyncIterator[list[Row]]:
        for start in range(0, len(self._rows), size):
            yield self._rows[start : start + size]


class _Posts:
    def __init__(self, tools: Tools, place: Place) -> None:
        self._tools = tools
        self._place = place
        self._count = 0

    async def write(self, rows: list[Row], columns: tuple[str, ...]) -> None:
        del columns  # every row names its own
        self._count += 1
        body = {"method": self._place.text("method") or "POST", "json": plain(rows)}
        call = _http_call(self._place, body)
        # Each chunk is an effect of its own, with a name that stays when the cycle runs again.
        key = call.idempotency_key and f"{call.idempotency_key}/chunk-{self._count}"
        await self._tools.get("http").run(msgspec.structs.replace(call, idempotency_key=key))


def _http_call(place: Place, further: Mapping[str, Any]) -> ToolCall:
    own = {name: place.options[name] for name in place.options if name not in _NOT_FOR_HTTP}
    address = own.pop("endpoint", None)
    return msgspec.structs.replace(
        place.call,
        kind="http",
        parameters={"url": address} | own | dict(further),
        credentials={"": place.credential} if place.credential else {},
    )


def _rows(place: Place, body: Any) -> list[Row]:
    path = place.text("data_path")
    found = body if path is None else field_of(body, path) if isinstance(body, dict) else None
    rows = [found] if isinstance(found, dict) else found
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        where = f"at data_path {shown(path)!r}" if path else "in the answer; name its `data_path`"
        raise failed("schema", f"the source of a transfer has no list of rows {where}")
    return rows
