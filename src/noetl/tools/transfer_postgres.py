"""PostgreSQL as an end of a transfer: a server-side cursor, or one insert a chunk.

Rows go to the server as JSON, and the server turns each field into its column's type. So a number,
a time or an object arrives whatever the source calls it.
"""

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from typing import Any

import asyncpg
import msgspec

from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import postgres_fields, secrets_of
from noetl.tools.postgres_failures import DRIVER_ERRORS, postgres_failure
from noetl.tools.postgres_values import Session, plain_value, set_codecs
from noetl.tools.transfer_plan import (
    Place,
    Row,
    Source,
    Target,
    TransferPlan,
    on_conflict,
    quoted,
)

CONNECT_SECONDS_MAX = 10.0


class PostgresEndpoints:
    @asynccontextmanager
    async def open_source(self, place: Place) -> AsyncIterator[Source]:
        query = place.query()
        # Nothing that a source says may change what it reads from.
        async with _connected(place) as connection, connection.transaction(readonly=True):
            yield _Cursor(connection, place, query)

    @asynccontextmanager
    async def open_target(self, place: Place, plan: TransferPlan) -> AsyncIterator[Target]:
        inserts = _Inserts(place, plan)
        async with _connected(place) as connection:
            with _translated(place):
                async with connection.transaction():
                    await inserts.begin(connection)
                    yield inserts


def endpoints(services: ToolServices) -> PostgresEndpoints:
    del services
    return PostgresEndpoints()


class _Cursor:
    def __init__(self, connection: Session, place: Place, query: str) -> None:
        self._connection = connection
        self._place = place
        self._query = query

    async def chunks(self, size: int) -> AsyncIterator[list[Row]]:
        with _translated(self._place):
            cursor = await self._connection.cursor(self._query)
        while True:
            with _translated(self._place):
                records = await cursor.fetch(size)
            if not records:
                return
            yield [{name: _kept(value) for name, value in record.items()} for record in records]


class _Inserts:
    def __init__(self, place: Place, plan: TransferPlan) -> None:
        self._table = place.table()
        self._place = place
        self._plan = plan
        self._connection: Session | None = None

    async def begin(self, connection: Session) -> None:
        self._connection = connection
        if self._plan.mode == "replace":
            await connection.execute(f"DELETE FROM {self._table}")

    async def write(self, rows: list[Row], columns: tuple[str, ...]) -> None:
        assert self._connection is not None
        named = ", ".join(map(quoted, columns))
        statement = (
            f"INSERT INTO {self._table} ({named}) SELECT {named}"
            f" FROM json_populate_recordset(NULL::{self._table}, $1::text::json)"
            f"{on_conflict(self._plan, columns)}"
        )
        with _translated(self._place):
            await self._connection.execute(statement, _encoded(rows))


@asynccontextmanager
async def _connected(place: Place) -> AsyncIterator[Session]:
    fields = postgres_fields(place.connection)
    with _translated(place):
        connection: Session = await asyncpg.connect(
            host=fields.host,
            port=fields.port,
            user=fields.user,
            password=fields.password,
            database=fields.database,
            ssl=fields.sslmode,
            timeout=CONNECT_SECONDS_MAX,
            server_settings={"search_path": fields.schema} if fields.schema else None,
        )
    try:
        with _translated(place):
            await set_codecs(connection)
        yield connection
    except BaseException:
        # Not in order: the server undoes what was not committed, and we wait for nothing.
        connection.terminate()
        raise
    await connection.close()


def _kept(value: Any) -> Any:
    """Exact numbers and bytes stay what they are; the target knows how to take them."""
    return value if isinstance(value, Decimal | bytes) else plain_value(value)


def _encoded(rows: list[Row]) -> str:
    return msgspec.json.encode(_for_server(rows)).decode()


def _for_server(value: Any) -> Any:
    """What JSON has no form for, in the server's own spelling."""
    if isinstance(value, dict):
        return {str(name): _for_server(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_for_server(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"\\x{bytes(value).hex()}"
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return str(Decimal(value))
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)


@contextmanager
def _translated(place: Place) -> Iterator[None]:
    try:
        yield
    except DRIVER_ERRORS as error:
        raise postgres_failure(error, secrets_of(place.call)) from None
