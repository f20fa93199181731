"""Many writers in pools of their own, as many processes: one log comes out of it."""

import asyncio
from itertools import cycle

import asyncpg
import pytest

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.domain.log import Appended, StoredEvent
from noetl.kernel.errors import VersionConflict
from noetl.kernel.instant import Instant
from noetl.testing.histories import History, execution_ids
from tests.postgres.conftest import OpenLog
from tests.postgres.streams import check_chains, sealed_append, steps, whole_log

pytestmark = pytest.mark.servers

WRITERS = 16
ROUNDS = 15


async def follow(log: PostgresEventLog, writing: "asyncio.Future[list[None]]") -> list[StoredEvent]:
    """Tail as a consumer would: never look back behind what was seen."""
    seen: list[StoredEvent] = []
    finished = False
    while not finished:
        finished = writing.done()  # asked before reading, so the last reads come after it
        while page := await log.tail(after_position=seen[-1].position if seen else 0, limit=11):
            seen += page
        await asyncio.wait([writing], timeout=0.001)
    return seen


async def write_streams(log: PostgresEventLog, number: int) -> None:
    """Streams of its own, in groups, so that every transaction takes its time."""
    for execution in execution_ids(ROUNDS, node=100 + number):
        history = History(execution)
        first = sealed_append(execution, steps(history, 3))
        outcomes = await log.append([first])
        outcomes += await log.append(
            [sealed_append(execution, steps(history, 2), await log.head(execution))]
        )
        assert all(isinstance(outcome, Appended) for outcome in outcomes)


async def test_l5_no_reader_misses_what_commits_late(open_log: OpenLog) -> None:
    logs = [await open_log() for _ in range(WRITERS)]
    readers = [await open_log() for _ in range(2)]
    writing = asyncio.gather(*(write_streams(log, at) for at, log in enumerate(logs)))

    seen = await asyncio.gather(*(follow(reader, writing) for reader in readers))
    await writing

    everything = await whole_log(logs[0])
    assert len(everything) == WRITERS * ROUNDS * 5
    check_chains(everything)
    for each in seen:
        assert [event.position for event in each] == [event.position for event in everything]


async def test_l4_one_of_sixteen_processes_lands(open_log: OpenLog) -> None:
    logs = [await open_log() for _ in range(WRITERS)]
    for execution in execution_ids(10):
        racers = (
            log.append([sealed_append(execution, steps(History(execution, node=at), 2))])
            for at, log in enumerate(logs)
        )
        outcomes = [outcome for (outcome,) in await asyncio.gather(*racers)]
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            "Appended",
            *["VersionConflict"] * (WRITERS - 1),
        ]
    check_chains(await whole_log(logs[0]))


async def test_hot_streams_stay_gapless(open_log: OpenLog) -> None:
    """Everybody writes to the same three streams and tries again until it has landed."""
    logs = [await open_log() for _ in range(6)]
    executions = execution_ids(3)

    async def insist(log: PostgresEventLog, number: int) -> None:
        for node, execution in zip(range(6), cycle(executions), strict=False):
            history = History(execution, node=300 + number * 10 + node)
            drafts = steps(history, 1)
            while True:
                head = await log.head(execution)
                (outcome,) = await log.append([sealed_append(execution, drafts, head)])
                if isinstance(outcome, Appended):
                    break
                assert isinstance(outcome, VersionConflict)

    await asyncio.gather(*(insist(log, number) for number, log in enumerate(logs)))

    events = await whole_log(logs[0])
    assert len(events) == 36
    check_chains(events)


async def test_ingest_time_never_falls_between_writers_with_different_clocks(
    open_log: OpenLog,
) -> None:
    (execution,) = execution_ids(1)
    ahead = await open_log(clock=lambda: Instant("2026-03-01T12:00:00.000000Z"))
    behind = await open_log(clock=lambda: Instant("2026-03-01T11:59:59.000000Z"))
    history = History(execution)
    for log in (ahead, behind, ahead, behind):
        head = await log.head(execution)
        group = [sealed_append(execution, steps(history, 1), head)]
        await log.append(group)

    times = [event.ingest_time for event in await behind.read(execution)]

    assert times == [Instant("2026-03-01T12:00:00.000000Z")] * 4


async def test_sixteen_writers_need_the_same_new_partition(
    open_log: OpenLog, postgres_dsn: str
) -> None:
    logs = [await open_log() for _ in range(WRITERS)]
    executions = execution_ids(WRITERS)

    outcomes = await asyncio.gather(
        *(
            log.append([sealed_append(execution, steps(History(execution), 1))])
            for log, execution in zip(logs, executions, strict=True)
        )
    )

    assert all(isinstance(outcome, Appended) for (outcome,) in outcomes)
    connection = await asyncpg.connect(postgres_dsn)
    partitions = await connection.fetch(
        """SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid
        WHERE inhparent = 'noetl.event'::regclass"""
    )
    await connection.close()
    assert [row[0] for row in partitions] == ["event_2026_01"]


async def test_a_reader_that_stays_does_not_hold_up_a_new_partition(
    open_log: OpenLog, sql: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    log = await open_log()
    (execution,) = execution_ids(1)
    async with sql.transaction():
        await sql.fetch("SELECT count(*) FROM noetl.event")  # holds its lock until the end
        (outcome,) = await asyncio.wait_for(
            log.append([sealed_append(execution, steps(History(execution), 1))]), timeout=10
        )
    assert isinstance(outcome, Appended)
