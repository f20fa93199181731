"""Of many writers at one version exactly one lands, and a tail misses nothing that lands."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.system.clock import utc_now
from noetl.domain.log import EMPTY_STREAM, Append, Appended, StoredEvent
from noetl.kernel.errors import VersionConflict
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import EventLog
from noetl.testing.histories import execution_ids
from tests.property.open_logs import ENGINES, entered, head_after

RACERS = 16
WAYS_IN = 4
PATIENCE_SECONDS = 0.001

few_sizes = st.lists(st.integers(1, 3), min_size=RACERS, max_size=RACERS)
plans = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), min_size=1, max_size=12)
"""For each execution the sizes of its appends, one after the other."""


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=12)
@given(before=st.integers(0, 3), sizes=few_sizes)
def test_one_of_sixteen_writers_lands_and_the_others_write_nothing(
    engine: str, before: int, sizes: list[int]
) -> None:
    async def run() -> None:
        async with ENGINES[engine](WAYS_IN) as logs:
            await race(logs, execution_ids(1)[0], before, sizes)

    asyncio.run(run())


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=12)
@given(plan=plans, limit=st.integers(1, 9))
def test_a_tail_under_many_writers_misses_nothing(
    engine: str, plan: list[list[int]], limit: int
) -> None:
    async def run() -> None:
        async with ENGINES[engine](WAYS_IN) as logs:
            await write_and_tail(logs, execution_ids(len(plan)), plan, limit)

    asyncio.run(run())


@pytest.mark.servers
class TestPostgres:
    """The same laws; a server is too dear to be made anew for every example."""

    @asynccontextmanager
    async def opened(self, dsn: str) -> AsyncIterator[list[EventLog]]:
        logs: list[EventLog] = []
        try:
            for _ in range(WAYS_IN):
                logs.append(await PostgresEventLog.open(dsn, utc_now))
            yield logs
        finally:
            for log in logs:
                await log.close()

    async def test_one_of_sixteen_writers_lands(self, postgres_dsn: str) -> None:
        async with self.opened(postgres_dsn) as logs:
            for turn, execution in enumerate(execution_ids(8)):
                sizes = [1 + (turn + racer) % 3 for racer in range(RACERS)]
                await race(logs, execution, before=turn % 3, sizes=sizes)

    async def test_a_tail_under_many_writers_misses_nothing(self, postgres_dsn: str) -> None:
        async with self.opened(postgres_dsn) as logs:
            for turn in range(4):
                plan = [[1 + (turn + number) % 3] * 4 for number in range(24)]
                executions = execution_ids(len(plan), node=10 + turn)
                await write_and_tail(logs, executions, plan, limit=7)


async def race(logs: list[EventLog], execution: ExecutionId, before: int, sizes: list[int]) -> None:
    head = EMPTY_STREAM
    if before:
        first = entered(execution, head, before, node=100)
        await logs[0].append([first])
        head = head_after(first)
    racers = [entered(execution, head, size, node=node) for node, size in enumerate(sizes)]

    answers = await asyncio.gather(
        *(logs[number % len(logs)].append([racer]) for number, racer in enumerate(racers))
    )

    outcomes = [outcome for (outcome,) in answers]
    winners = [
        racer
        for racer, outcome in zip(racers, outcomes, strict=True)
        if isinstance(outcome, Appended)
    ]
    assert len(winners) == 1
    losers = [outcome for outcome in outcomes if isinstance(outcome, VersionConflict)]
    assert len(losers) == len(racers) - 1
    end = head.version + len(winners[0].events)
    assert {(error.expected, error.actual) for error in losers} == {(head.version, end)}
    for log in logs:
        rows = await log.read(execution, after_version=head.version)
        assert [row.canonical for row in rows] == [each.canonical for each in winners[0].events]
        assert await log.head(execution) == head_after(winners[0])


async def write_and_tail(
    logs: list[EventLog], executions: list[ExecutionId], plan: list[list[int]], limit: int
) -> None:
    reader, *writers = logs
    start = await _last_position(reader)
    writing = asyncio.gather(
        *(
            _write(writers[number % len(writers)], execution, sizes)
            for number, (execution, sizes) in enumerate(zip(executions, plan, strict=True))
        )
    )
    seen: list[StoredEvent] = []
    finished = False
    while not finished:
        finished = writing.done()  # asked before reading, so the last read comes after it
        last = seen[-1].position if seen else start
        seen += await reader.tail(after_position=last, limit=limit)
        await asyncio.wait([writing], timeout=PATIENCE_SECONDS)
    while page := await reader.tail(after_position=seen[-1].position, limit=limit):
        seen += page

    written = [sealed for appends in writing.result() for each in appends for sealed in each.events]
    positions = [row.position for row in seen]
    assert positions == sorted(set(positions))
    assert sorted(row.canonical for row in seen) == sorted(sealed.canonical for sealed in written)
    for execution in executions:
        versions = [row.stream_version for row in seen if row.execution_id == execution]
        assert versions == list(range(1, len(versions) + 1))


async def _write(log: EventLog, execution: ExecutionId, sizes: list[int]) -> list[Append]:
    head, written = EMPTY_STREAM, []
    for size in sizes:
        append = entered(execution, head, size, node=head.version)
        (outcome,) = await log.append([append])
        assert isinstance(outcome, Appended), outcome
        written.append(append)
        head = head_after(append)
    return written


async def _last_position(log: EventLog) -> int:
    last = 0
    while page := await log.tail(after_position=last):
        last = page[-1].position
    return last
