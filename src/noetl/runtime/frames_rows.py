"""The rows of a frame: sent along with it, or a part of a collection in the payload store."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.work import FrameWork, RowOutcome
from noetl.kernel.errors import PayloadError
from noetl.kernel.scope import Scope
from noetl.ports.clock import Clock
from noetl.results.dataset import DatasetPart, outcomes_of
from noetl.results.store import ResultStore
from noetl.runtime.worker_patience import insisted

COLLECTIONS_KEPT_MAX = 2
"""Frames of one loop follow each other: the next one mostly needs the same collection again."""


ENDED_WELL = ("ok", "break")


class Collections:
    def __init__(self, results: ResultStore, clock: Clock) -> None:
        self._results = results
        self._clock = clock
        self._decoded: OrderedDict[tuple[Scope, str], asyncio.Task[list[Any]]] = OrderedDict()

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

    async def kept(self, work: FrameWork, check: Callable[[], None]) -> dict[int, RowOutcome]:
        """Rows that ended well in an earlier frame, by index. Raises PayloadError."""
        outcomes: Sequence[RowOutcome] = work.kept
        if work.kept_ref is not None:
            part = DatasetPart(first=work.first_index, rows=0, reference=work.kept_ref)
            rows = await insisted(lambda: self._results.rows(work.scope, part), check, self._clock)
            outcomes = outcomes_of(rows)
        return {outcome.index: outcome for outcome in outcomes if outcome.status in ENDED_WELL}

    async def _items(self, reference: ResultReference, scope: Scope) -> list[Any]:
        """Frames that begin together share one fetch, and none of them can cancel it."""
        uri = reference.uri
        fetch = self._decoded.get((scope, uri))
        if fetch is None or _has_failed(fetch):
            fetch = self._decoded[scope, uri] = asyncio.create_task(self._fetched(reference, scope))
        self._decoded.move_to_end((scope, uri))
        while len(self._decoded) > COLLECTIONS_KEPT_MAX:
            self._decoded.popitem(last=False)
        return await asyncio.shield(fetch)

    async def _fetched(self, reference: ResultReference, scope: Scope) -> list[Any]:
        uri = reference.uri
        try:
            items = await self._results.content(scope, uri, reference)
        except msgspec.MsgspecError:
            items = None
        if not isinstance(items, list):
            raise PayloadError(f"the collection {uri} is no JSON list; run the step again")
        return items


def _has_failed(fetch: "asyncio.Task[list[Any]]") -> bool:
    return fetch.done() and (fetch.cancelled() or fetch.exception() is not None)


def _counted(rows: list[Any], work: FrameWork, where: str) -> list[Any]:
    if len(rows) != work.row_count:
        raise PayloadError(
            f"{where} has {len(rows)} of the {work.row_count} rows from {work.first_index} on"
        )
    return rows
