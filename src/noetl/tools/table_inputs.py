"""Stored tables that a call was given, as files: mapped by whoever reads them, not decoded here."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from noetl.kernel.errors import PayloadError, StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.ports.tool_services import ToolServices
from noetl.templates.table_rows import TableRows
from noetl.tools.failures import failed


class TableInput(NamedTuple):
    at: tuple[str | int, ...]  # where in the value it was given
    path: Path


@asynccontextmanager
async def table_inputs(
    value: Any, services: ToolServices, scope: Scope
) -> AsyncIterator[list[TableInput]]:
    """A file for every table inside of a value. Raises ToolFailed."""
    found = list(_tables(value, ()))
    if not found:
        yield []
        return
    await asyncio.to_thread(services.folder.mkdir, parents=True, exist_ok=True)
    scratch = tempfile.TemporaryDirectory(prefix="tables-", dir=services.folder)
    try:
        yield [
            TableInput(at, await _file(rows, services, scope, Path(scratch.name)))
            for at, rows in found
        ]
    finally:
        await asyncio.to_thread(scratch.cleanup)


def without_rows(value: Any) -> Any:
    """The value with null where tables are."""
    if isinstance(value, TableRows):
        return None
    if type(value) is dict:
        return {key: without_rows(item) for key, item in value.items()}
    if type(value) is list:
        return [without_rows(item) for item in value]
    return value


async def _file(rows: TableRows, services: ToolServices, scope: Scope, scratch: Path) -> Path:
    assert rows.reference is not None, "a table is stored before it is passed on"
    try:
        return await services.results.local_file(scope, rows.reference, scratch)
    except PayloadError as error:
        raise failed("missing_reference", f"{error}; run the step that made it again") from error
    except StoreUnavailable as error:
        raise failed("connection", f"the payload store did not answer: {error}") from error
    except OSError as error:
        message = f"there is no room for a table of the input: {error}; free space and try again"
        raise failed("storage_quota", message, retryable=True) from error


def _tables(
    value: Any, at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], TableRows]]:
    if isinstance(value, TableRows):
        yield at, value
    elif type(value) is dict:
        for key, item in value.items():
            yield from _tables(item, (*at, key))
    elif type(value) is list:
        for index, item in enumerate(value):
            yield from _tables(item, (*at, index))
