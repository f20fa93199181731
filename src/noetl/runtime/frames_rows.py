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
from noetl.templates.table_rows import TableRows

COLLECTIONS_KEPT_MAX = 2
"""Frames of one loop follow each other: the next one mostly needs the same collection again."""


ENDED_WELL = ("ok", "break")

Items = list[Any] | TableRows


class Collections:
    def __init__(self, results: ResultStore, clock: Clock) -> None:
        self._results = results
        self._clock = clock
        self._opened: OrderedDict[tuple[Scope, str], asyncio.Task[Items]] = OrderedDict()

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

    async def _items(self, reference: ResultReference, scope: Scope) -> Items:
        """Frames that begin together share one fetch, and none of them can cancel it."""
        uri = reference.uri
        fetch = self._opened.get((scope, uri))
        if fetch is None or _has_failed(fetch):
            fetch = self._opened[scope, uri] = asyncio.create_task(self._fetched(reference, scope))
        self._opened.move_to_end((scope, uri))
        while len(self._opened) > COLLECTIONS_KEPT_MAX:
            self._opened.popitem(last=False)
        return await asyncio.shield(fetch)

    async def _fetched(self, reference: ResultReference, scope: Scope) -> Items:
        uri = reference.uri
        try:
            content = await self._results.content(scope, uri, reference, lazily=True)
        except msgspec.MsgspecError:
            content = None
        items = content if isinstance(content, list) else _table_in(content, uri)
        if items is None:
            raise PayloadError(
                f"the collection {uri} is neither a list nor a table; run the step again"
            )
        return items


def _table_in(content: Any, uri: str) -> TableRows | None:
    """The table that the object is about: others that stand beside it lie in objects of their own.

    Its rows stay in the file, and a frame decodes those it is for.
    """
    if isinstance(content, TableRows):
        is_own = content.reference is not None and content.reference.uri == uri
        return content if is_own else None
    inner = content.values() if isinstance(content, dict) else ()
    return next((table for each in inner if (table := _table_in(each, uri)) is not None), None)


def _has_failed(fetch: asyncio.Task[Items]) -> bool:
    return fetch.done() and (fetch.cancelled() or fetch.exception() is not None)


def _counted(rows: list[Any], work: FrameWork, where: str) -> list[Any]:
    if len(rows) != work.row_count:
        raise PayloadError(
            f"{where} has {len(rows)} of the {work.row_count} rows from {work.first_index} on"
        )
    return rows
