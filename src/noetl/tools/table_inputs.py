"""Stored tables that a call was given, as files: mapped by whoever reads them, not decoded here."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import is_result_uri
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
    value: Any, services: ToolServices, scope: Scope, *, by_name: bool = False
) -> AsyncIterator[list[TableInput]]:
    """A file for every table inside of a value; `by_name`: for every name of a result among its
    members, too. Raises ToolFailed."""
    found = list(_tables(value, ()))
    if by_name and isinstance(value, dict):
        found += _named(value)
    if not found:
        yield []
        return
    await asyncio.to_thread(services.folder.mkdir, parents=True, exist_ok=True)
    scratch = tempfile.TemporaryDirectory(prefix="tables-", dir=services.folder)
    try:
        yield [
            TableInput(at, await _file(reference, services, scope, Path(scratch.name)))
            for at, reference in found
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


async def _file(
    reference: ResultReference, services: ToolServices, scope: Scope, scratch: Path
) -> Path:
    try:
        return await services.results.local_file(scope, reference, scratch)
    except PayloadError as error:
        message = f"{error}; run the step that made it again"
        raise failed("missing_reference", message, code=error.code) from error
    except StoreUnavailable as error:
        raise failed("connection", f"the payload store did not answer: {error}") from error
    except OSError as error:
        message = f"there is no room for a table of the input: {error}; free space and try again"
        raise failed("storage_quota", message, retryable=True) from error


def _tables(
    value: Any, at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], ResultReference]]:
    if isinstance(value, TableRows):
        assert value.reference is not None, "a table is stored before it is passed on"
        yield at, value.reference
    elif type(value) is dict:
        for key, item in value.items():
            yield from _tables(item, (*at, key))
    elif type(value) is list:
        for index, item in enumerate(value):
            yield from _tables(item, (*at, index))


def _named(
    members: dict[str, Any],
) -> Iterator[tuple[tuple[str | int, ...], ResultReference]]:
    for key, item in members.items():
        if isinstance(item, str) and is_result_uri(item):
            yield (key,), ResultReference(type="object_store", uri=item)
