"""Claim rows of work from PostgreSQL: the transaction stays open until the rows are written down.

PostgreSQL knows what became of a transaction by its number, so nothing has to be kept for it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from noetl.ports.cursor import ClaimRequest, Fate
from noetl.ports.tool import ToolFailed
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.postgres import StatementFailed, connection_fields, run_one
from noetl.tools.postgres_failures import DRIVER_ERRORS, postgres_failure
from noetl.tools.postgres_pools import PostgresPools, pool_options
from noetl.tools.postgres_session import PostgresSession
from noetl.tools.postgres_values import Session
from noetl.tools.sql_claims import claimed_rows, claiming_statements
from noetl.tools.sql_effects import touches_rows_only
from noetl.tools.sql_parameters import BoundStatement
from noetl.tools.sql_results import Outcome
from noetl.tools.sql_statements import POSTGRES

_NAME = "noetl claim "
_BEGIN = f"""BEGIN;
    SET LOCAL idle_in_transaction_session_timeout = {{}};
    SELECT set_config('application_name', '{_NAME}' || pg_current_xact_id(), true)"""
"""One round trip: a holder that fell silent must not keep its rows locked for ever, and the server
tells the new name of the session, with the number of the transaction in it."""

_FATE = "SELECT pg_xact_status($1::text::xid8)"
_FATES: dict[str | None, Fate] = {"aborted": "aborted", "in progress": "open"}


class _Claim:
    def __init__(self, session: PostgresSession, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.transaction = _number(session.connection)
        self._connection = session.connection

    async def commit(self) -> None:
        await self._connection.execute("COMMIT")


class PostgresCursor:
    def __init__(self, services: ToolServices) -> None:
        del services
        self._pools = PostgresPools()

    @asynccontextmanager
    async def claim(self, request: ClaimRequest) -> AsyncIterator[_Claim]:
        call = request.call
        statements = await claiming_statements(call, POSTGRES)
        options = pool_options(call.parameters.get("pool"))
        try:
            async with self._pools.session(connection_fields(call), options) as session:
                try:
                    outcomes = await _claimed(session, statements, request.idle_seconds_max)
                    yield _Claim(session, claimed_rows(outcomes))
                finally:
                    if session.connection.is_in_transaction():
                        await session.connection.execute("ROLLBACK")
        except StatementFailed as refused:
            raise refused.told(statements, call) from None
        except DRIVER_ERRORS as error:
            raise postgres_failure(error, secrets_of(call)) from None

    async def fate(self, request: ClaimRequest, transaction: str) -> Fate:
        """A number so old that the server forgot it was committed: staged rows are not dropped."""
        call = request.call
        options = pool_options(call.parameters.get("pool"))
        try:
            async with self._pools.session(connection_fields(call), options) as session:
                told = await session.connection.fetchval(_FATE, transaction)
        except DRIVER_ERRORS as error:
            raise postgres_failure(error, secrets_of(call)) from None
        return _FATES.get(told, "committed")

    async def close(self) -> None:
        await self._pools.close()


async def _claimed(
    session: PostgresSession, statements: Sequence[BoundStatement], idle_seconds_max: float
) -> list[Outcome]:
    """In a transaction that stays open. Raises StatementFailed."""
    if not all(touches_rows_only(item.statement) for item in statements):
        await session.begin_afresh()
        return await _run_each(session, statements, idle_seconds_max)
    session.begin_plain()
    try:
        return await _run_each(session, statements, idle_seconds_max)
    except StatementFailed as refused:
        if not session.forgets_after(refused.error):
            raise
    await session.connection.execute("ROLLBACK")
    session.begin_plain()
    return await _run_each(session, statements, idle_seconds_max)


async def _run_each(
    session: PostgresSession, statements: Sequence[BoundStatement], idle_seconds_max: float
) -> list[Outcome]:
    milliseconds = max(1, round(idle_seconds_max * 1000))
    await session.connection.execute(_BEGIN.format(milliseconds))
    outcomes: list[Outcome] = []
    for index, statement in enumerate(statements):
        try:
            outcomes.append(await run_one(session, statement))
        except (*DRIVER_ERRORS, ToolFailed) as error:
            raise StatementFailed(error, index) from error
    return outcomes


def _number(connection: Session) -> str:
    name: str = connection.get_settings().application_name
    return name.removeprefix(_NAME)
