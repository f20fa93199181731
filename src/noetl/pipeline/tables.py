"""Tables that tools hand over as files: mapped while the row goes on, stored when a task is done.

From then on a table is a stored result: tasks that follow, the step's result and the journal name
it, and nobody encodes it again.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.pipeline.cycle import Cycle, Tried
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job
from noetl.pipeline.keeping import name_of
from noetl.pipeline.sensitive import SecretsSeen
from noetl.ports.tool import ToolResult
from noetl.results.mapping import mapped_file
from noetl.results.store import ResultStore
from noetl.results.tabular import with_table
from noetl.templates.recorded import VALUE, referred_result, stored_result
from noetl.templates.table_rows import TableRows

if TYPE_CHECKING:
    from noetl.results.stored_table import StoredTable


class HandedTables:
    """The tables of one row."""

    __slots__ = ("_folder", "_job", "_secrets", "_store")

    def __init__(self, job: Job, store: ResultStore, secrets: SecretsSeen) -> None:
        self._job = job
        self._store = store
        self._secrets = secrets
        self._folder: Path | None = None

    async def value(self, result: ToolResult) -> Any:
        """The table that the call gave. The file is gone after this, what is in it is not."""
        if result.stored is not None:
            return await self._in_parts(result.stored)
        table = result.table
        assert table is not None, "a plain value is not handed over"
        self._folder = table.path.parent
        try:
            opened = await asyncio.to_thread(_opened, table.path)
        finally:
            await asyncio.to_thread(table.path.unlink, missing_ok=True)
        if self._job.is_in_loop:
            # The result of a row is part of its frame's table: rows inside of it are plain.
            whole = await asyncio.to_thread(opened.whole)
            return whole[VALUE]
        return _value_of(opened)

    async def _in_parts(self, reference: ResultReference) -> Any:
        """A table that its tool has stored."""
        scope, is_secret = self._job.scope, bool(self._secrets.forms())
        is_plain = self._job.is_in_loop or is_secret
        content = await self._store.content(scope, reference.uri, reference, lazily=not is_plain)
        if is_secret:  # what was stored may show what this row knows; what is recorded must not
            await self._store.discard(scope, reference)
        if is_plain:
            return content[VALUE]
        result = await asyncio.to_thread(referred_result, content, reference)
        return stored_result(result, content[VALUE])

    async def stored(self, cycle: Cycle, tried: Tried) -> Tried:
        """The end of the task with its table in the store. Raises StoreUnavailable."""
        handed = _handed(tried.outcome.result)
        if handed is None:
            return tried
        from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow
        from noetl.results.table_scrub import scrubbed  # noqa: PLC0415 - loads Arrow

        assert isinstance(handed.source, StoredTable)
        source: StoredTable = handed.source
        if forms := self._secrets.forms():
            assert self._folder is not None, "a table was handed over as a file"
            source = await asyncio.to_thread(scrubbed, source, forms, self._folder)
        name = name_of(self._job, cycle.plan.name, cycle.run)
        reference = await self._store.stage_file(name, source.as_file())
        value = _value_of(source)
        rows = _handed(value)
        assert rows is not None, "a table stands in its own content"
        rows.reference = reference
        outcome = tried.outcome
        result = referred_result({VALUE: value}, reference, outcome.status)
        kept = msgspec.structs.replace(outcome, result=stored_result(result, value))
        return msgspec.structs.replace(tried, outcome=kept)


def _opened(path: Path) -> "StoredTable":
    from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow

    view = mapped_file(path)
    if view is None:
        raise failed("unknown", f"the tool gave a table in {path}, which cannot be read; try again")
    return StoredTable(view)


def _value_of(table: "StoredTable") -> Any:
    rows = TableRows(table, None, table.table.keys)
    return with_table(table.shell, table.table, rows, table.length)[VALUE]


def _handed(value: Any) -> TableRows | None:
    """The table of a value that is not stored yet."""
    if isinstance(value, TableRows):
        return value if value.reference is None else None
    if type(value) is dict:
        return next(filter(None, map(_handed, value.values())), None)
    return None
