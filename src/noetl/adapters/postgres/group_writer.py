"""Groups of appends into the log: one statement when nothing stands against it, else with care.

The append lock is held until a commit is visible. So positions rise in commit order, and whoever
takes the lock after a connection broke knows that the transaction in doubt is over.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import asyncpg

from noetl.adapters.postgres.admissions import Ledger, Place, claimed_places
from noetl.adapters.postgres.failures import DRIVER_ERRORS, leaves_doubt
from noetl.adapters.postgres.insertion import insertion
from noetl.adapters.postgres.partitions import Partitions, Tables
from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.recorded import heads_of, last_position_of, recorded_of
from noetl.adapters.postgres.rows import Row, number, row_of
from noetl.adapters.postgres.schema import APPEND_LOCK
from noetl.adapters.postgres.subjects import subject_of
from noetl.domain.log import Append, Appended, AppendOutcome
from noetl.kernel.errors import InvariantBroken, LogUnavailable
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant, to_datetime

RESOLVE_ATTEMPTS_MAX = 60
RESOLVE_PAUSE_SECONDS = 0.5

_BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT {APPEND_LOCK}"

T = TypeVar("T")


class Entry(NamedTuple):
    """An append and its rows, made before the lock is taken."""

    append: Append
    rows: list[Row]


class OutcomeUnknown(Exception):
    """The connection broke while a commit was under way."""


class GroupWriter:
    def __init__(
        self, pool: PostgresPool, clock: Callable[[], Instant], *, distribution: bool
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._distribution = distribution
        self._partitions = Partitions(pool)

    async def write(self, group: Sequence[Append]) -> list[AppendOutcome]:
        entries = [_entry(append) for append in group]
        executions = {int(append.execution_id) for append in group}
        tables = await self._partitions.ensure(executions)
        try:
            outcomes = await self._write_at_once(entries, tables)
        except asyncpg.UniqueViolationError:
            outcomes = None  # another writer was first, or a key or a fact is there already
        except (asyncpg.CheckViolationError, asyncpg.UndefinedTableError):
            outcomes = None
            self._partitions.forget()  # somebody dropped one
            tables = await self._partitions.ensure(executions)
        return outcomes or await self._write_with_care(entries, tables)

    async def _write_at_once(
        self, entries: list[Entry], tables: Tables
    ) -> list[AppendOutcome] | None:
        """None when something is not as the appends say it is; then nothing was written."""
        places = claimed_places([entry.append for entry in entries])
        ledger = Ledger(places.copy())
        outcomes = [ledger.admit(entry.append) for entry in entries]
        if not all(isinstance(outcome, Appended) for outcome in outcomes):
            return None
        statement = self._statement(entries, places, tables)
        try:
            async with self._pool.connection() as connection:
                last = await _answered(connection.fetchval(*statement))
        except OutcomeUnknown as unknown:
            last = await self._resolved(entries, unknown)
        return None if last is None else _shifted(outcomes, last - ledger.position)

    async def _write_with_care(self, entries: list[Entry], tables: Tables) -> list[AppendOutcome]:
        """Look at everything under the lock, take out what cannot land, write the rest."""
        appends = [entry.append for entry in entries]
        landing: list[Entry] = []
        try:
            async with self._pool.connection() as connection:
                await connection.execute(_BEGIN)
                places, position = await heads_of(connection, tables)
                ledger = Ledger(places.copy(), await recorded_of(connection, appends), position)
                outcomes = [ledger.admit(append) for append in appends]
                landing = _landing(entries, outcomes)
                if landing:
                    statement = self._statement(landing, places, tables)
                    last = await connection.fetchval(*statement)
                    if last != ledger.position:
                        raise InvariantBroken(f"the log is at {last}, not {ledger.position}")
                    await _answered(connection.execute("COMMIT"))
        except OutcomeUnknown as unknown:
            await self._resolved(landing, unknown)
        return outcomes

    def _statement(
        self, entries: list[Entry], places: dict[ExecutionId, Place], tables: Tables
    ) -> tuple[Any, ...]:
        """The SQL and its arguments."""
        appends = {entry.append.execution_id: entry.append for entry in entries}
        before = [
            (int(execution), place.head.version, number(place.head.last_event_id), *place.scope)
            for execution in appends
            if (place := places.get(execution)) is not None and place.scope is not None
        ]
        continued = {execution for execution, *_ in before}
        arguments: list[Any] = [
            [row for entry in entries for row in entry.rows],
            to_datetime(self._clock()),
            *zip(*before, strict=True),
        ]
        if self._distribution:
            subjects = [subject_of(append.scope, name) for name, append in appends.items()]
            arguments += [[int(execution) for execution in appends], subjects]
        looked_at = (table for table, held in tables.items() if not continued.isdisjoint(held))
        return insertion(tuple(looked_at), distribution=self._distribution), *arguments

    async def _resolved(self, entries: list[Entry], unknown: OutcomeUnknown) -> int:
        """The last position of the group, if it landed after all."""
        for _ in range(RESOLVE_ATTEMPTS_MAX):
            try:
                async with self._pool.connection() as connection:
                    # Behind the lock: until the lost transaction is over, no answer is final.
                    await connection.execute(_BEGIN)
                    last = await last_position_of(connection, [entry.append for entry in entries])
            except DRIVER_ERRORS:
                await self._pool.pause(RESOLVE_PAUSE_SECONDS)
                continue
            if last is None:
                raise LogUnavailable(f"{unknown}; nothing was written, try again") from unknown
            return last
        raise LogUnavailable(
            f"{unknown} and the server has not come back: whether the events were written is not"
            " known; read the head of the stream before appending again"
        ) from unknown


def _entry(append: Append) -> Entry:
    execution = int(append.execution_id)
    return Entry(append, [row_of(sealed, execution) for sealed in append.events])


def _landing(entries: list[Entry], outcomes: list[AppendOutcome]) -> list[Entry]:
    return [
        entry
        for entry, outcome in zip(entries, outcomes, strict=True)
        if isinstance(outcome, Appended) and not outcome.duplicate
    ]


def _shifted(outcomes: list[AppendOutcome], by: int) -> list[AppendOutcome]:
    """Outcomes that were counted from nought, as positions of the log."""
    return [
        Appended(outcome.version, outcome.first_position + by, outcome.last_position + by)
        for outcome in outcomes
        if isinstance(outcome, Appended)
    ]


async def _answered(commit: Awaitable[T]) -> T:
    """What a committing statement returns; OutcomeUnknown when nobody can say."""
    try:
        return await commit
    except DRIVER_ERRORS as error:
        if not leaves_doubt(error):
            raise
        raise OutcomeUnknown(f"the connection broke during the commit ({error})") from error
