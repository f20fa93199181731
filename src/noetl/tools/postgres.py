"""Run SQL on PostgreSQL.

All statements of a call are one transaction: all of them happen, or none. It is left to the author
where the text has BEGIN or COMMIT itself, and each statement stands alone where one of them, such
as VACUUM, cannot run inside of a transaction.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache
from typing import Any

import msgspec

from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import PostgresFields, postgres_fields, secrets_of
from noetl.tools.deadlines import Deadlines
from noetl.tools.failures import failed
from noetl.tools.postgres_failures import DRIVER_ERRORS, postgres_failure
from noetl.tools.postgres_pools import POOLS_MAX, PostgresPools, pool_options
from noetl.tools.postgres_session import Kept, PostgresSession, first_rows
from noetl.tools.postgres_values import Session, coerced, hints_of, plain_row
from noetl.tools.sql_effects import only_reads, touches_rows_only
from noetl.tools.sql_parameters import BoundStatement, bound_statements, has_sql_effect
from noetl.tools.sql_results import Outcome, change_outcome, combined, rows_outcome
from noetl.tools.sql_statements import (
    POSTGRES,
    TEXT_KEPT_CHARS_MAX,
    TEXTS_KEPT_MAX,
    Statement,
    controls_transaction,
)
from noetl.tools.sql_tables import FETCH_ROWS, ResultRows

_CONNECTION = frozenset((
    "db_host", "db_port", "db_user", "db_password", "db_name", "sslmode", "schema",
    "host", "port", "user", "password", "database", "dsn", "connection_string",
))  # fmt: skip
_ALONE = frozenset({"DATABASE", "TABLESPACE", "SUBSCRIPTION", "SYSTEM", "CONCURRENTLY", "SCHEMA"})
_ENDS_INSIDE = re.compile(r"\b(?:COMMIT|ROLLBACK)\b", re.IGNORECASE)


class PostgresTool:
    waits = False

    def __init__(self, services: ToolServices) -> None:
        self._folder = services.folder
        self._pools = PostgresPools()
        self._deadlines = Deadlines()

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return has_sql_effect(parameters, POSTGRES)

    async def run(self, call: ToolCall) -> ToolResult:
        statements = await bound_statements(call.parameters, POSTGRES)
        for item in statements:
            _check_copy(item.statement)
        told = [item.statement for item in statements]
        rows = ResultRows(self._folder, told)
        try:
            with self._deadlines.within(call.timeout_seconds):
                outcomes = await self._outcomes(call, statements, rows)
        except TimeoutError:
            await asyncio.to_thread(rows.discard)
            raise failed(
                "db_timeout",
                f"the SQL took longer than {call.timeout_seconds:g} s and was cancelled;"
                " raise `timeout`, or make the query faster",
            ) from None
        except BaseException:
            await asyncio.to_thread(rows.discard)
            raise
        if rows.table is not None:
            return ToolResult(table=rows.table)
        return ToolResult(value=combined(told, outcomes))

    async def close(self) -> None:
        await self._pools.close()
        self._deadlines.close()

    async def _outcomes(
        self, call: ToolCall, statements: Sequence[BoundStatement], rows: ResultRows
    ) -> list[Outcome]:
        options = pool_options(call.parameters.get("pool"))
        try:
            async with self._pools.session(connection_fields(call), options) as session:
                outcomes = await run_statements(session, statements, rows)
                await _check_ended(session.connection)
                return outcomes
        except StatementFailed as refused:
            raise refused.told(statements, call) from None
        except DRIVER_ERRORS as error:
            raise postgres_failure(error, secrets_of(call)) from None


class StatementFailed(Exception):
    """What was raised for one of several statements, counted from 0."""

    def __init__(self, error: Exception, index: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.index = index

    def told(self, statements: Sequence[BoundStatement], call: ToolCall) -> ToolFailed:
        if isinstance(self.error, ToolFailed):
            return self.error
        number = self.index if len(statements) > 1 else None
        return postgres_failure(self.error, secrets_of(call), number)


def connection_fields(call: ToolCall) -> PostgresFields:
    """What stands beside the query comes before the credential."""
    among = call.credentials.values()
    named = next((one for one in among if one.type.startswith("postgres")), call.credential)
    beside = {}
    if not _CONNECTION.isdisjoint(call.parameters):
        beside = {name: call.parameters[name] for name in _CONNECTION & call.parameters.keys()}
    if named is None and not beside:
        raise failed("client_error", "there is no database to ask; name a credential: `auth: NAME`")
    layers = ({} if named is None else named.data, beside)
    return _known_fields(msgspec.json.encode(layers))


@lru_cache(POOLS_MAX)
def _known_fields(layers: bytes) -> PostgresFields:
    """Rows of a loop come with the same login."""
    return postgres_fields(*msgspec.json.decode(layers))


async def run_statements(
    session: PostgresSession, statements: Sequence[BoundStatement], rows: ResultRows
) -> list[Outcome]:
    """All of them, or none. `rows` takes what the last one reads, however much that is.

    Raises StatementFailed.
    """
    if not all(_leaves_nothing(item.statement) for item in statements):
        await session.begin_afresh()
        return await _run_all(session, statements, rows)
    session.begin_plain()
    try:
        return await _run_all(session, statements, rows)
    except StatementFailed as refused:
        if not session.forgets_after(refused.error):
            raise
    session.begin_plain()
    return await _run_all(session, statements, rows)


def _leaves_nothing(statement: Statement) -> bool:
    is_short = len(statement.text) <= TEXT_KEPT_CHARS_MAX
    return _known_to_leave(statement) if is_short else touches_rows_only(statement)


_known_to_leave = lru_cache(TEXTS_KEPT_MAX)(touches_rows_only)
"""By statement: rows of a loop come with the same one."""


async def _run_all(
    session: PostgresSession, statements: Sequence[BoundStatement], rows: ResultRows
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    if len(statements) > 1 and _is_one_transaction([item.statement for item in statements]):
        transaction: AbstractAsyncContextManager[None] = session.connection.transaction()
    else:
        transaction = nullcontext()  # a single one is one by itself
    async with transaction:
        for index, statement in enumerate(statements):
            try:
                if index == len(statements) - 1 and _reads(statement):
                    rows.follow(outcomes)
                    outcomes.append(await _read(session, statement, rows))
                else:
                    outcomes.append(await run_one(session, statement))
            except (*DRIVER_ERRORS, ToolFailed) as error:
                raise StatementFailed(error, index) from error
    return outcomes


async def _check_ended(connection: Session) -> None:
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")
        raise failed(
            "schema", "the SQL began a transaction and did not end it, so it was undone; add COMMIT"
        )


async def run_one(session: PostgresSession, bound: BoundStatement) -> Outcome:
    kept = await session.statement(bound.text)
    return await _fetched(kept, _fitting(kept, bound))


async def _fetched(kept: Kept, arguments: list[Any]) -> Outcome:
    rows = await kept.prepared.fetch(*arguments)
    if kept.columns:
        return rows_outcome(kept.columns, map(plain_row, rows))
    status = kept.prepared.get_statusmsg() or ""
    count = status.rpartition(" ")[2]
    return change_outcome(int(count) if count.isdigit() else 0, status)


def _fitting(kept: Kept, bound: BoundStatement) -> list[Any]:
    """The values as the driver wants them."""
    pairs = zip(bound.arguments, kept.parameters, strict=True)
    return [coerced(value, kind) for value, kind in pairs]


def _reads(bound: BoundStatement) -> bool:
    """Whether it may be read in pieces, which takes a transaction."""
    return bound.statement.words[:1] in (("SELECT",), ("WITH",), ("VALUES",), ("TABLE",))


async def _read(session: PostgresSession, bound: BoundStatement, rows: ResultRows) -> Outcome:
    kept = await session.statement(bound.text)
    arguments = _fitting(kept, bound)
    if not kept.columns:  # a SELECT without columns, or WITH … INSERT
        return await _fetched(kept, arguments)
    words, texts = bound.statement.words, session.texts
    if texts.is_short(words) and only_reads(bound.statement):
        # Run again in the rare case that it has grown: it changes nothing.
        fetched = await first_rows(kept.prepared, arguments, FETCH_ROWS)
        if fetched is not None and len(fetched) < FETCH_ROWS:
            rows.begin(kept.columns, hints_of(kept.attributes))
            rows.add(list(map(plain_row, fetched)))  # few rows are not worth a thread
            return rows.outcome()
    is_short = await _read_in_pieces(session.connection, kept, arguments, rows)
    texts.learn(words, is_short=is_short)
    return rows.outcome() if is_short else await asyncio.to_thread(rows.outcome)


async def _read_in_pieces(
    connection: Session, kept: Kept, arguments: list[Any], rows: ResultRows
) -> bool:
    """Whether a single piece was enough."""
    async with nullcontext() if connection.is_in_transaction() else connection.transaction():
        cursor = await kept.prepared.cursor(*arguments)
        fetched = await cursor.fetch(FETCH_ROWS)
        rows.begin(kept.columns, hints_of(kept.attributes))
        if len(fetched) < FETCH_ROWS:
            rows.add(list(map(plain_row, fetched)))
            return True
        while fetched:
            await asyncio.to_thread(lambda batch: rows.add(list(map(plain_row, batch))), fetched)
            fetched = await cursor.fetch(FETCH_ROWS)
        return False


def _check_copy(statement: Statement) -> None:
    """The driver would wait for ever for the rows of a client that has none."""
    words = statement.words
    if words[:1] == ("COPY",) and not {"STDIN", "STDOUT"}.isdisjoint(words):
        raise failed(
            "schema",
            "COPY from or to the client has no rows here; use INSERT, or the transfer tool",
        )


def _is_one_transaction(statements: Sequence[Statement]) -> bool:
    return not any(
        controls_transaction(statement) or _stands_alone(statement) for statement in statements
    )


def _stands_alone(statement: Statement) -> bool:
    words = statement.words
    match words[:1]:
        case ("VACUUM",) | ("DISCARD",):
            return True
        case ("CREATE" | "DROP" | "ALTER",):
            return words[1] in _ALONE - {"SCHEMA"} or "CONCURRENTLY" in words
        case ("REINDEX",):
            return not _ALONE.isdisjoint(words)
        case ("CLUSTER",):
            return len(words) == 1
        case ("DO",):
            return bool(_ENDS_INSIDE.search(statement.text))
        case _:
            return False
