"""Run SQL on DuckDB; steps of one execution share their tables in a file of their own.

All statements of a call are one transaction, unless the text has BEGIN or COMMIT itself, or one of
them, such as ATTACH, is better off outside of one. Calls on one file take turns. It stays open as
long as there are others, and a moment longer for the rows of a loop; then other processes get their
turn. Settings and attached databases last as long as the call.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from noetl.kernel.ids import ExecutionId
from noetl.ports.tool import ToolCall, ToolResult, ToolTable
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.duckdb_failures import locked_too_long
from noetl.tools.duckdb_session import (
    LOCK_SECONDS,
    LOCK_TRIES_MAX,
    DuckdbSession,
    LockedElsewhere,
    leaves_nothing,
)
from noetl.tools.duckdb_tables import tables_of
from noetl.tools.failures import failed
from noetl.tools.sql_parameters import bound_statements, has_sql_effect
from noetl.tools.sql_results import Outcome, combined
from noetl.tools.sql_statements import DUCKDB
from noetl.tools.sql_threads import FileLocks, SqlThreads
from noetl.tools.table_inputs import table_inputs

MEMORY = ":memory:"
FILE_NAME = "tables.duckdb"
IDLE_SECONDS = 0.2
"""Opening a file costs more than most queries; but while it is open, no other process has it."""


class DuckdbTool:
    waits = False
    takes_tables = True

    def __init__(self, services: ToolServices) -> None:
        self._clock = services.clock
        self._services = services
        self._threads = SqlThreads("duckdb-tool")
        self._locks = FileLocks()
        self._kept: dict[str, tuple[duckdb.DuckDBPyConnection, asyncio.TimerHandle]] = {}

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
                told = [item.statement for item in statements]
                is_plain = path != MEMORY and not call.credentials and leaves_nothing(told)
                session.tables = tables_of(given, files)
                session.scratch = self._services.folder
                turn = _Turn(session, is_plain=is_plain, is_row=call.stage_id is not None)
                outcomes, table = await self._outcomes(path, turn)
        except TimeoutError:
            raise failed(
                "db_timeout",
                f"the SQL took longer than {call.timeout_seconds:g} s and was stopped;"
                " raise `timeout`, or make the query faster",
            ) from None
        if table is not None:
            return ToolResult(table=table)
        return ToolResult(value=combined(told, outcomes, prefer_rows=True))

    async def close(self) -> None:
        for path in list(self._kept):
            await self._end(path)
        self._threads.close()

    async def _path(self, call: ToolCall) -> str:
        given = call.parameters.get("database")
        if given == MEMORY:
            return MEMORY
        path = database_path(self._services, call.execution_id, given)
        if path.is_relative_to(self._services.folder):
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        return str(path)

    async def _outcomes(self, path: str, turn: "_Turn") -> tuple[list[Outcome], ToolTable | None]:
        async with nullcontext() if path == MEMORY else self._locks.holding(path):
            for _ in range(LOCK_TRIES_MAX):
                try:
                    return await self._run(path, turn)
                except LockedElsewhere:
                    await self._clock.sleep(LOCK_SECONDS)
        raise locked_too_long(path)

    async def _run(self, path: str, turn: "_Turn") -> tuple[list[Outcome], ToolTable | None]:
        """In a database that is open already, unless the call would leave something in it."""
        session = turn.session
        if turn.is_plain:
            session.keeps = turn.is_row or self._locks.is_awaited(path)
            session.database = self._taken(path)
        else:
            await self._end(path)
        answer = await self._threads.run(session.run)
        if session.database is not None:
            timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._let_go, path)
            self._kept[path] = session.database, timer
        return answer

    def _taken(self, path: str) -> "duckdb.DuckDBPyConnection | None":
        database, timer = self._kept.pop(path, (None, None))
        if timer is not None:
            timer.cancel()
        return database

    def _let_go(self, path: str) -> None:
        database = self._taken(path)
        if database is not None:
            self._threads.begin(database.close)

    async def _end(self, path: str) -> None:
        database = self._taken(path)
        if database is not None:
            await self._threads.run(lambda _: database.close())


@dataclass(frozen=True, slots=True)
class _Turn:
    session: DuckdbSession
    is_plain: bool  # others may use the same open database before and after it
    is_row: bool  # of a loop: others are likely to follow


def database_path(services: ToolServices, execution_id: ExecutionId, given: Any = None) -> Path:
    """The file that is named, or the execution's own."""
    return services.base / str(given) if given else services.folder / execution_id / FILE_NAME
