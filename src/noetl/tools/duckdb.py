"""Run SQL on DuckDB; steps of one execution share their tables in a file of their own.

All statements of a call are one transaction, unless the text has BEGIN or COMMIT itself, or one of
them, such as ATTACH, is better off outside of one. A file is open only while a call uses it, so
that other processes get their turn; settings and attached databases last as long as the call.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from noetl.kernel.ids import ExecutionId
from noetl.ports.tool import ToolCall, ToolResult, ToolTable
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.duckdb_session import DuckdbSession, LockedElsewhere
from noetl.tools.duckdb_tables import tables_of
from noetl.tools.failures import failed
from noetl.tools.sql_parameters import bound_statements, has_sql_effect
from noetl.tools.sql_results import Outcome, combined
from noetl.tools.sql_statements import DUCKDB
from noetl.tools.sql_threads import FileLocks, SqlThreads
from noetl.tools.table_inputs import table_inputs

MEMORY = ":memory:"
FILE_NAME = "tables.duckdb"
LOCK_TRIES_MAX = 100
LOCK_SECONDS = 0.1
"""How often, and how long each time, to wait for another process that has the file open."""


class DuckdbTool:
    waits = False
    takes_tables = True

    def __init__(self, services: ToolServices) -> None:
        self._clock = services.clock
        self._services = services
        self._threads = SqlThreads("duckdb-tool")
        self._locks = FileLocks()

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return has_sql_effect(parameters, DUCKDB)

    async def run(self, call: ToolCall) -> ToolResult:
        statements = await bound_statements(call.parameters, DUCKDB)
        path = await self._path(call)
        given = call.parameters.get("tables") or {}
        try:
            async with (
                table_inputs(given, self._services, call.scope, by_name=True) as files,
                asyncio.timeout(call.timeout_seconds),
            ):
                session = DuckdbSession(path, statements, call.credentials, secrets_of(call))
                session.tables = tables_of(given, files)
                session.scratch = self._services.folder
                outcomes, table = await self._outcomes(path, session)
        except TimeoutError:
            raise failed(
                "db_timeout",
                f"the SQL took longer than {call.timeout_seconds:g} s and was stopped;"
                " raise `timeout`, or make the query faster",
            ) from None
        if table is not None:
            return ToolResult(table=table)
        told = [item.statement for item in statements]
        return ToolResult(value=combined(told, outcomes, prefer_rows=True))

    async def close(self) -> None:
        self._threads.close()

    async def _path(self, call: ToolCall) -> str:
        given = call.parameters.get("database")
        if given == MEMORY:
            return MEMORY
        path = database_path(self._services, call.execution_id, given)
        if path.is_relative_to(self._services.folder):
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        return str(path)

    async def _outcomes(
        self, path: str, session: DuckdbSession
    ) -> tuple[list[Outcome], ToolTable | None]:
        async with nullcontext() if path == MEMORY else self._locks.holding(path):
            for _ in range(LOCK_TRIES_MAX):
                try:
                    return await self._threads.run(session.run)
                except LockedElsewhere:
                    await self._clock.sleep(LOCK_SECONDS)
        raise failed("db_connection", f"another process has {path} open; try again when it is done")


def database_path(services: ToolServices, execution_id: ExecutionId, given: Any = None) -> Path:
    """The file that is named, or the execution's own."""
    return services.base / str(given) if given else services.folder / execution_id / FILE_NAME
