"""Partitions of `noetl.event`: one per month of execution ids, made when an id first needs it.

There is no default partition. It would catch nothing, since the writer makes what is missing, and
every later partition would have to search it, under a lock that keeps all readers out.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.schema import SCHEMA_LOCK, SCHEMA_LOCK_TIMEOUT
from noetl.kernel.snowflake import EPOCH_MILLIS

_TIME_SHIFT = 22  # bits of node and sequence below the milliseconds of an id
_ID_MAX = 2**63 - 1
_EPOCH = datetime.fromtimestamp(EPOCH_MILLIS // 1000, UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Not `to_regclass`, which may answer from a cache that is older than the lock we waited for.
_ALREADY_THERE = """
SELECT true FROM pg_class WHERE relnamespace = 'noetl'::regnamespace AND relname = $1"""

Tables = dict[str, list[int]]
"""Executions by the table that holds them."""


class Partition(NamedTuple):
    name: str
    first_id: int
    last_id: int

    @property
    def table(self) -> str:
        return f"noetl.{self.name}"

    def holds(self, execution: int) -> bool:
        return self.first_id <= execution <= self.last_id


def partition_of(execution: int) -> Partition:
    """The partition of the month in which the id was made."""
    minted = _EPOCH + (execution >> _TIME_SHIFT) * _MILLISECOND
    first = minted.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    after = (first + timedelta(days=31)).replace(day=1)
    last_id = min(_first_id(after) - 1, _ID_MAX)
    return Partition(f"event_{first:%Y_%m}", _first_id(first), last_id)


class Partitions:
    """The ones known to exist. Those that somebody dropped are found out by `forget`."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        self._known: list[Partition] = []

    async def ensure(self, executions: Iterable[int]) -> Tables:
        """Make what is missing and say where everything is."""
        by_table: Tables = {}
        for execution in executions:
            partition = next((each for each in self._known if each.holds(execution)), None)
            if partition is None:
                partition = partition_of(execution)
                await self._make(partition)
                self._known.append(partition)
            by_table.setdefault(partition.table, []).append(execution)
        return by_table

    def forget(self) -> None:
        self._known.clear()

    async def _make(self, partition: Partition) -> None:
        async with self._pool.connection() as connection:
            if await connection.fetchval(_ALREADY_THERE, partition.name):
                return
            async with connection.transaction():
                await connection.execute(f"{SCHEMA_LOCK_TIMEOUT}; SELECT {SCHEMA_LOCK}")
                if not await connection.fetchval(_ALREADY_THERE, partition.name):
                    await connection.execute(_creation(partition))


def _creation(partition: Partition) -> str:
    # Attached rather than created as a partition: that takes no lock that readers would wait for.
    upper = "MAXVALUE" if partition.last_id == _ID_MAX else str(partition.last_id + 1)
    return f"""
CREATE TABLE {partition.table} (
    LIKE noetl.event INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE
) WITH (toast_tuple_target = 4096);
ALTER TABLE noetl.event ATTACH PARTITION {partition.table}
    FOR VALUES FROM ({partition.first_id}) TO ({upper})"""


def _first_id(moment: datetime) -> int:
    return ((moment - _EPOCH) // _MILLISECOND) << _TIME_SHIFT
