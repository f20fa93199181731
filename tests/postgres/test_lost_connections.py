"""A connection that dies while a commit is under way: the log finds out before it answers."""

import asyncio

import asyncpg
import pytest

from noetl.adapters.postgres import group_writer
from noetl.domain.log import Appended
from noetl.kernel.errors import LogUnavailable, VersionConflict
from noetl.testing.histories import History, command_cycle, execution_ids
from tests.postgres.conftest import OpenLog
from tests.postgres.cutting_proxy import cutting_proxy
from tests.postgres.streams import STEP, check_chains, sealed_append, steps, whole_log

pytestmark = pytest.mark.servers

FIRST, SECOND, THIRD = execution_ids(3)


def carries_rows(data: bytes) -> bool:
    return b'"step":"load"' in data


def commits(data: bytes) -> bool:
    return b"COMMIT\0" in data


async def test_a_commit_whose_answer_is_lost_is_reported_as_landed(
    open_log: OpenLog, postgres_dsn: str
) -> None:
    async with cutting_proxy(postgres_dsn) as (proxy, dsn):
        log = await open_log(dsn=dsn)
        await log.append([sealed_append(THIRD, steps(History(THIRD), 3))])
        proxy.cut_answer_to = carries_rows
        group = [
            sealed_append(FIRST, steps(History(FIRST), 2)),
            sealed_append(SECOND, steps(History(SECOND), 3)),
        ]

        outcomes = await log.append(group)

        assert proxy.cuts == 1
        assert outcomes == [Appended(2, 4, 5), Appended(3, 6, 8)]
        events = await whole_log(await open_log())
        assert [event.position for event in events] == list(range(1, 9))
        check_chains(events)
        await log.close()


async def test_a_request_that_never_arrived_wrote_nothing(
    open_log: OpenLog, postgres_dsn: str
) -> None:
    async with cutting_proxy(postgres_dsn) as (proxy, dsn):
        log = await open_log(dsn=dsn)
        await log.append([sealed_append(THIRD, steps(History(THIRD), 3))])
        proxy.cut_request = carries_rows
        append = sealed_append(FIRST, steps(History(FIRST), 2))

        with pytest.raises(LogUnavailable, match="nothing was written"):
            await log.append([append])

        assert proxy.cuts == 1
        assert await log.read(FIRST) == []
        proxy.cut_request = lambda _: False
        assert await log.append([append]) == [Appended(2, 4, 5)]
        await log.close()


@pytest.mark.parametrize("lands", [True, False])
async def test_the_same_for_a_group_that_needed_care(
    open_log: OpenLog, postgres_dsn: str, lands: bool
) -> None:
    async with cutting_proxy(postgres_dsn) as (proxy, dsn):
        log = await open_log(dsn=dsn)
        report = sealed_append(FIRST, list(command_cycle(History(FIRST), STEP)))
        await log.append([report])
        stale = sealed_append(FIRST, steps(History(FIRST, node=7), 1))
        fresh = sealed_append(SECOND, steps(History(SECOND), 2))
        if lands:
            proxy.cut_answer_to = commits
        else:
            proxy.cut_request = commits

        if lands:
            outcomes = await log.append([stale, fresh])
            assert isinstance(outcomes[0], VersionConflict)
            assert outcomes[1] == Appended(2, 8, 9)
        else:
            with pytest.raises(LogUnavailable, match="nothing was written"):
                await log.append([stale, fresh])

        assert proxy.cuts == 1
        assert len(await log.read(SECOND)) == (2 if lands else 0)
        await log.close()


async def test_the_answer_waits_for_a_transaction_that_is_not_over(
    open_log: OpenLog, postgres_dsn: str, sql: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    """A server that lost sight of its client may commit long after the client gave up on it."""
    async with cutting_proxy(postgres_dsn) as (proxy, dsn):
        log = await open_log(dsn=dsn)
        await log.append([sealed_append(THIRD, steps(History(THIRD), 1))])
        blocker = sql.transaction()
        await blocker.start()
        await sql.execute("LOCK TABLE noetl.event_2026_01 IN ACCESS EXCLUSIVE MODE")
        appending = asyncio.create_task(
            log.append([sealed_append(FIRST, steps(History(FIRST), 2))])
        )
        await _until_somebody_waits(postgres_dsn)
        await proxy.close()  # the statement is running; only its client is gone
        done, _ = await asyncio.wait([appending], timeout=0.7)
        assert not done

        await blocker.rollback()

        # Either is right, as long as the log agrees.
        try:
            landed = [Appended(2, 2, 3)] == await appending
        except LogUnavailable:
            landed = False
        assert len(await (await open_log()).read(FIRST)) == (2 if landed else 0)
        await log.close()


async def test_a_server_that_stays_away_leaves_the_outcome_open(
    open_log: OpenLog, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_writer, "RESOLVE_ATTEMPTS_MAX", 3)
    monkeypatch.setattr(group_writer, "RESOLVE_PAUSE_SECONDS", 0.01)
    async with cutting_proxy(postgres_dsn) as (proxy, dsn):
        log = await open_log(dsn=dsn)
        await log.append([sealed_append(THIRD, steps(History(THIRD), 1))])
        proxy.cut_answer_to = carries_rows
        proxy.refuses = True

        with pytest.raises(LogUnavailable, match="not known"):
            await log.append([sealed_append(FIRST, steps(History(FIRST), 2))])

        proxy.refuses = False
        assert len(await log.read(FIRST)) == 2
        await log.close()


async def _until_somebody_waits(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    waiting = "SELECT count(*) FROM pg_locks, pg_sleep(0.01) WHERE NOT granted"
    while not await connection.fetchval(waiting):
        pass
    await connection.close()
