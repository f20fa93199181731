"""What a decision has to have first: payloads it looks into, items and results put away."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from noetl.decider.answers import AssembleFirst, Missing, StoreFirst
from noetl.decider.loops import loop_content
from noetl.decider.view import Closing, StoredCollection, View
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.execution.state import FrameOutput, LoopWork
from noetl.kernel.scope import Scope
from noetl.pipeline.payloads import MEDIA_TYPE, as_payload, as_reference, read_json
from noetl.ports.payload_store import PayloadStore
from noetl.templates.errors import Need
from noetl.templates.extract import cut_as_plain
from noetl.templates.recorded import LOOP
from noetl.templates.reference import Cut
from noetl.templates.render import Needs

PREVIEW_BYTES_MAX = 4_096


class Gathering:
    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    async def complete(self, view: View, missing: Missing, scope: Scope) -> View:
        """The view with what was missing. Payloads never change, so asking again is safe."""
        match missing:
            case Needs(needs):
                return replace(view, fetched={**view.fetched, **await self._fetch(needs, scope)})
            case StoreFirst(loop_id, items):
                reference = await self._store(items, scope)
                stored = StoredCollection(reference, len(items))
                return replace(view, collections={**view.collections, loop_id: stored})
            case AssembleFirst(loop_id):
                closing = await self._assemble(view.state.loop_work[loop_id], scope)
                return replace(view, closings={**view.closings, loop_id: closing})

    async def _fetch(self, needs: Iterable[Need], scope: Scope) -> dict[str, Any]:
        return {
            uri: await read_json(self._payloads, scope, uri)
            for uri in sorted({need.payload for need in needs})
        }

    async def _store(self, items: list[Any], scope: Scope) -> ResultReference:
        stored = await self._payloads.put(scope, msgspec.json.encode(items), MEDIA_TYPE)
        return msgspec.structs.replace(as_reference(stored), row_count=len(items))

    async def _assemble(self, work: LoopWork, scope: Scope) -> Closing:
        """One object with the results of all rows, written as a stream of frames."""
        stored = await self._payloads.put(scope, self._content(work, scope), MEDIA_TYPE)
        rows = sum(output.window.rows for output in work.outputs)
        reference = msgspec.structs.replace(as_reference(stored), row_count=rows)
        preview = await self._first_values(work)
        content = loop_content(work, preview)
        cut = Cut(within={LOOP: Cut(within={"results": Cut(length=rows)})})
        context = {"extracted": content, "cut": cut_as_plain(cut)}
        return Closing(Result(status="ok", reference=reference, context=context), reference)

    async def _content(self, work: LoopWork, scope: Scope) -> AsyncIterator[bytes]:
        shell = loop_content(work, [])[LOOP]
        yield b'{"loop":{"count":%s,"results":[' % msgspec.json.encode(shell["count"])
        separator = b""
        for output in _in_order(work):
            rows = await self._outcomes(output, scope)
            values = b",".join(msgspec.json.encode(row.get("value")) for row in rows)
            if values:
                yield separator + values
                separator = b","
        yield b'],"stats":%s}}' % msgspec.json.encode(shell["stats"])

    async def _outcomes(self, output: FrameOutput, scope: Scope) -> list[dict[str, Any]]:
        if output.output_ref is None:
            return output.outcomes
        payload = as_payload(output.output_ref, scope)
        data = b"".join([chunk async for chunk in self._payloads.get(payload)])
        rows: list[dict[str, Any]] = msgspec.json.decode(data)
        return rows

    async def _first_values(self, work: LoopWork) -> list[Any]:
        """The beginning of the results, as the first frame told it."""
        first = next(iter(_in_order(work)), None)
        values: list[Any] = []
        size = 0
        for row in first.outcomes if first is not None else []:
            size += len(msgspec.json.encode(row.get("value")))
            if size > PREVIEW_BYTES_MAX:
                break
            values.append(row.get("value"))
        return values


def _in_order(work: LoopWork) -> list[FrameOutput]:
    return sorted(work.outputs, key=lambda output: output.window.first)
