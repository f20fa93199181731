"""The rows of a frame: sent along with it, or a part of a collection in the payload store."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.payload import payload_uri
from noetl.domain.work import FrameWork
from noetl.kernel.errors import PayloadError, PayloadMissing
from noetl.kernel.scope import Scope
from noetl.ports.clock import Clock
from noetl.ports.payload_store import PayloadStore
from noetl.runtime.payloads import as_payload
from noetl.runtime.worker_patience import insisted

COLLECTIONS_KEPT_MAX = 2
"""Frames of one loop follow each other: the next one mostly needs the same collection again."""


class Collections:
    def __init__(self, payloads: PayloadStore, clock: Clock) -> None:
        self._payloads = payloads
        self._clock = clock
        self._decoded: OrderedDict[str, asyncio.Task[list[Any]]] = OrderedDict()

    async def rows(self, work: FrameWork, check: Callable[[], None]) -> list[Any]:
        """Raises PayloadError, and what `check` raises."""
        if work.rows is not None:
            return _counted(work.rows, work, f"frame {work.frame_id}")
        if work.collection is None:
            raise PayloadError(f"frame {work.frame_id} has neither rows nor a collection")
        reference = work.collection
        items = await insisted(lambda: self._items(reference, work.scope), check, self._clock)
        last = work.first_index + work.row_count
        return _counted(items[work.first_index : last], work, reference.uri)

    async def _items(self, reference: ResultReference, scope: Scope) -> list[Any]:
        """Frames that begin together share one fetch, and none of them can cancel it."""
        # Another tenant's payload is not there for this one, even when its bytes are the same.
        if reference.uri != payload_uri(scope, reference.sha256 or ""):
            raise PayloadMissing(reference.uri)
        fetch = self._decoded.get(reference.uri)
        if fetch is None or _has_failed(fetch):
            fetch = asyncio.create_task(self._fetched(reference, scope))
            self._decoded[reference.uri] = fetch
        self._decoded.move_to_end(reference.uri)
        while len(self._decoded) > COLLECTIONS_KEPT_MAX:
            self._decoded.popitem(last=False)
        return await asyncio.shield(fetch)

    async def _fetched(self, reference: ResultReference, scope: Scope) -> list[Any]:
        chunks = self._payloads.get(as_payload(reference, scope))
        encoded = b"".join([chunk async for chunk in chunks])
        try:
            items: list[Any] = msgspec.json.decode(encoded, type=list[Any])
        except msgspec.MsgspecError as error:
            raise PayloadError(
                f"the collection {reference.uri} is no JSON list; run the step before it again"
            ) from error
        return items


def _has_failed(fetch: "asyncio.Task[list[Any]]") -> bool:
    return fetch.done() and (fetch.cancelled() or fetch.exception() is not None)


def _counted(rows: list[Any], work: FrameWork, where: str) -> list[Any]:
    if len(rows) != work.row_count:
        raise PayloadError(
            f"{where} has {len(rows)} of the {work.row_count} rows from {work.first_index} on"
        )
    return rows
