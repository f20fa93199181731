"""Backends terminated and servers killed under load: nothing acknowledged is lost or doubled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.postgres.projection_store import PostgresProjectionStore
from noetl.adapters.system.clock import utc_now
from noetl.domain.log import Append, Appended
from noetl.kernel.errors import LogError, LogUnavailable, StoreUnavailable
from noetl.kernel.ids import EventId, ExecutionId
from noetl.servers.postgres import PostgresServer
from noetl.testing.histories import History, execution_ids
from noetl.testing.projections import cursor_at, query, record
from noetl.wire.codec import open_stored
from tests.postgres.streams import check_chains, sealed_append, steps, whole_log

pytestmark = [pytest.mark.servers, pytest.mark.crash]

WRITERS = 4
KILLS = 3
ACKNOWLEDGED_EACH = 40
ROUNDS_MAX = 300


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[PostgresServer]:
    """One of its own: the others go on using the shared one."""
    with PostgresServer(tmp_path / "postgres") as server:
        yield server


class Writer:
    """Appends to streams of its own and remembers what it was told."""

    def __init__(self, log: PostgresEventLog, number: int) -> None:
        self._log = log
        self._executions = iter(execution_ids(2_000, node=200 + number))
        self.acknowledged: list[tuple[EventId, int]] = []
        self.surprises = 0
        self.enough = asyncio.Event()

    async def run(self) -> None:
        while not self.enough.is_set():
            execution = next(self._executions)
            history = History(execution)
            for _ in range(3):
                await self._insist(execution, history)

    async def _insist(self, execution: ExecutionId, history: History) -> None:
        """As a coordinator does: after an error it reads the head and decides again."""
        drafts = steps(history, 4)
        while True:
            try:
                head = await self._log.head(execution)
                if head.last_event_id == drafts[-1].event_id:
                    return  # an earlier try had landed without being acknowledged
                append = sealed_append(execution, drafts, head)
                (outcome,) = await self._log.append([append])
            except LogUnavailable:
                self.surprises += 1
                await asyncio.sleep(0.02)
                continue
            assert isinstance(outcome, Appended), outcome
            self._remember(append, outcome)
            return

    def _remember(self, append: Append, outcome: Appended) -> None:
        for position, sealed in enumerate(append.events, start=outcome.first_position):
            self.acknowledged.append((sealed.envelope.event_id, position))


async def check_everything(dsn: str, writers: list[Writer]) -> None:
    log = await PostgresEventLog.open(dsn, utc_now)
    events = await whole_log(log)
    await log.close()
    check_chains(events)
    there = {(open_stored(each).envelope.event_id, each.position) for each in events}
    ids = [(each.execution_id, open_stored(each).envelope.event_id) for each in events]
    assert len(ids) == len(set(ids))
    for writer in writers:
        assert len(writer.acknowledged) > ACKNOWLEDGED_EACH
        assert set(writer.acknowledged) <= there


async def test_terminated_backends_lose_and_double_nothing(postgres_dsn: str) -> None:
    logs = [await PostgresEventLog.open(postgres_dsn, utc_now) for _ in range(WRITERS)]
    writers = [Writer(log, number) for number, log in enumerate(logs)]
    running = asyncio.gather(*(writer.run() for writer in writers))
    killer = await asyncpg.connect(postgres_dsn)
    for round_ in range(ROUNDS_MAX):
        await asyncio.sleep(0.05)
        await killer.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
                AND backend_type = 'client backend' AND random() < 0.3"""
        )
        if round_ > 20 and all(len(each.acknowledged) > ACKNOWLEDGED_EACH for each in writers):
            break
    await killer.close()
    for writer in writers:
        writer.enough.set()
    await running
    for log in logs:
        await log.close()

    assert sum(writer.surprises for writer in writers) > 0
    await check_everything(postgres_dsn, writers)


async def test_a_killed_server_loses_and_doubles_nothing(server: PostgresServer) -> None:
    dsn = server.create_database("log")
    logs = [await PostgresEventLog.open(dsn, utc_now) for _ in range(WRITERS)]
    writers = [Writer(log, number) for number, log in enumerate(logs)]
    running = asyncio.gather(*(writer.run() for writer in writers))
    for _ in range(KILLS):
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
    await asyncio.sleep(0.3)
    for writer in writers:
        writer.enough.set()
    await running
    for log in logs:
        await log.close()

    assert sum(writer.surprises for writer in writers) > 0
    await check_everything(dsn, writers)


async def test_p3_p6_a_killed_server_leaves_records_and_cursor_together(
    server: PostgresServer,
) -> None:
    dsn = server.create_database("log")
    store = await PostgresProjectionStore.open(dsn, utc_now)
    heard = 0
    under_way = asyncio.Event()

    async def save_for_ever() -> None:
        nonlocal heard
        for version in range(1, 100_000):
            batch = [record(projection_id=name, version=version) for name in "abc"]
            await store.save(batch, cursor_at(version))
            heard = version
            if version == 30:
                under_way.set()

    saving = asyncio.create_task(save_for_ever())
    await under_way.wait()
    await asyncio.to_thread(server.kill)
    with pytest.raises(StoreUnavailable):
        await saving
    await asyncio.to_thread(server.start)

    cursor = await store.cursor("projector/0")
    assert cursor is not None
    assert cursor.position >= heard
    assert {each.version for each in await store.query(query())} == {cursor.position}
    await store.close()


async def test_a_log_goes_on_after_its_server_was_away(server: PostgresServer) -> None:
    dsn = server.create_database("log")
    log = await PostgresEventLog.open(dsn, utc_now)
    (execution,) = execution_ids(1)
    append = sealed_append(execution, steps(History(execution), 2))
    server.stop()
    with pytest.raises(LogError) as raised:
        await log.append([append])
    assert raised.value.retryable
    server.start()

    assert await log.append([append]) == [Appended(2, 1, 2)]
    await log.close()
