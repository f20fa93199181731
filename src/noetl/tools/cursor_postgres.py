"""Claim rows of work from PostgreSQL: the transaction stays open until the rows are written down.

PostgreSQL knows what became of a transaction by its number, so nothing has to be kept for it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from asyncpg.transaction import Transaction

from noetl.ports.cursor import ClaimRequest, Fate
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.postgres import connection_fields, run_statements
from noetl.tools.postgres_failures import DRIVER_ERRORS, postgres_failure
from noetl.tools.postgres_pools import PostgresPools, pool_options
from noetl.tools.sql_claims import claimed_rows, claiming_statements
from noetl.tools.sql_statements import POSTGRES

_FATES: dict[str | None, Fate] = {"aborted": "aborted", "in progress": "open"}


class _Claim:
    def __init__(self, block: Transaction, rows: list[dict[str, Any]], transaction: str) -> None:
        self.rows = rows
        self.transaction = transaction
        self._block = block

    async def commit(self) -> None:
        await self._block.commit()


class PostgresCursor:
    def __init__(self, services: ToolServices) -> None:
        del services
        self._pools = PostgresPools()

    @asynccontextmanager
    async def claim(self, request: ClaimRequest) -> AsyncIterator[_Claim]:
        call = request.call
        secrets = secrets_of(call)
        statements = await claiming_statements(call, POSTGRES)
        options = pool_options(call.parameters.get("pool"))
        try:
            async with self._pools.session(connection_fields(call), options) as session:
                block = session.transaction()
                await block.start()
                try:
                    await session.execute(_limit(request.idle_seconds_max))
                    outcomes = await run_statements(session, statements, secrets)
                    number = await session.fetchval("SELECT pg_current_xact_id()::text")
                    yield _Claim(block, claimed_rows(outcomes), number)
                finally:
                    if session.is_in_transaction():
                        await block.rollback()
        except DRIVER_ERRORS as error:
            raise postgres_failure(error, secrets) from None

    async def fate(self, request: ClaimRequest, transaction: str) -> Fate:
        """A number so old that the server forgot it was committed: staged rows are not dropped."""
        call = request.call
        options = pool_options(call.parameters.get("pool"))
        try:
            async with self._pools.session(connection_fields(call), options) as session:
                told = await session.fetchval("SELECT pg_xact_status($1::text::xid8)", transaction)
        except DRIVER_ERRORS as error:
            raise postgres_failure(error, secrets_of(call)) from None
        return _FATES.get(told, "committed")

    async def close(self) -> None:
        await self._pools.close()


def _limit(idle_seconds_max: float) -> str:
    """A holder that fell silent must not keep its rows locked for ever."""
    milliseconds = max(1, round(idle_seconds_max * 1000))
    return f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"
