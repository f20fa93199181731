"""Read models in SQL: what the suite of the port does not ask."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.projection_store import STATUS_CHARACTERS_MAX, PostgresProjectionStore
from noetl.adapters.postgres.snapshot_store import PostgresSnapshotStore
from noetl.adapters.system.clock import utc_now
from noetl.domain.execution.rows import ExecutionRow
from noetl.domain.projection import ProjectionRecord
from noetl.kernel.ids import EventId, StepName
from noetl.kernel.instant import Instant
from noetl.testing.projections import FIRST, SECOND, cursor_at, ids, query, record

pytestmark = pytest.mark.servers

Sql = asyncpg.Connection


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[PostgresProjectionStore]:
    opened = await PostgresProjectionStore.open(postgres_dsn, utc_now)
    yield opened
    await opened.close()


async def test_the_view_of_executions_answers_existing_queries(
    store: PostgresProjectionStore, sql: "Sql[asyncpg.Record]"
) -> None:
    row = ExecutionRow(
        execution_id=FIRST,
        status="FAILED",
        last_event_type="playbook.failed",
        last_node_name=StepName("load"),
        last_event_id=EventId("77"),
        started_at=Instant("2026-01-01T00:00:00.000000Z"),
        ended_at=Instant("2026-01-01T00:00:09.500000Z"),
        error="503 from the other side",
    )
    fields = {"execution_id": FIRST, "projection_id": FIRST, "source_event_id": EventId("77")}
    await store.save(
        [
            record(msgspec.to_builtins(row), projection_type="execution", **fields),
            record(projection_type="stage", projection_id="s"),
        ]
    )

    rows = await sql.fetch(
        """SELECT execution_id, status, last_event_type, last_node_name, error,
            last_projected_event_id, end_time - start_time, state->>'path'
        FROM noetl.execution"""
    )

    assert [tuple(row)[:6] for row in rows] == [
        (int(FIRST), "FAILED", "playbook.failed", "load", "503 from the other side", 77)
    ]
    assert rows[0][6].total_seconds() == 9.5


async def test_an_execution_that_runs_has_no_end_yet(
    store: PostgresProjectionStore, sql: "Sql[asyncpg.Record]"
) -> None:
    row = msgspec.to_builtins(ExecutionRow(execution_id=FIRST, status="RUNNING"))
    await store.save([record(row, projection_type="execution", projection_id=FIRST)])
    found = await sql.fetchrow("SELECT status, start_time, end_time, error FROM noetl.execution")
    assert tuple(found or ()) == ("RUNNING", None, None, None)


async def test_savers_in_any_order_do_not_wait_for_each_other_in_a_ring(
    store: PostgresProjectionStore,
) -> None:
    names = [f"{number:03}" for number in range(60)]

    async def save(version: int) -> int:
        order = names if version % 2 else list(reversed(names))
        return await store.save([record(projection_id=name, version=version) for name in order])

    stale = await asyncio.gather(*(save(version) for version in range(1, 25)))

    found = await store.query(query(limit=100))
    assert ids(found) == names
    assert {each.version for each in found} == {24}
    assert all(count in (0, len(names)) for count in stale)


@pytest.mark.parametrize("status", ["x" * 5000, "a\0b", "\\u0000", "é"])
async def test_any_text_can_be_a_status(store: PostgresProjectionStore, status: str) -> None:
    same_start = status[:STATUS_CHARACTERS_MAX]
    await store.save(
        [
            record({"status": status}, projection_id="a"),
            record({"status": f"{same_start}!"}, projection_id="b"),
        ]
    )
    assert ids(await store.query(query(where={"status": status}))) == ["a"]


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({"after_id": "b"}, "projection_pkey"),
        ({"after_id": "b", "execution_id": SECOND}, "idx_projection_execution"),
        ({"after_id": "b", "where": {"status": "RARE"}}, "idx_projection_status"),
    ],
    ids=["by id", "by execution", "by status"],
)
async def test_pages_are_read_from_an_index(
    store: PostgresProjectionStore,
    sql: "Sql[asyncpg.Record]",
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    index: str,
) -> None:
    """A query that sorted or scanned would grow with the tenant, not with the page."""
    states = [{"status": "RARE" if number % 400 == 0 else "DONE"} for number in range(2_000)]
    await store.save(
        [
            record(
                state,
                projection_id=f"c{number:04}",
                execution_id=SECOND if number % 500 == 0 else FIRST,
            )
            for number, state in enumerate(states)
        ]
    )
    await sql.execute("ANALYZE noetl.projection")
    asked_for: list[tuple[Any, ...]] = []
    select = store._select

    async def listen(*statement: Any) -> list[ProjectionRecord]:
        asked_for.append(statement)
        return await select(*statement)

    monkeypatch.setattr(store, "_select", listen)
    assert await store.query(query(limit=3, **asked))

    statement, *arguments = asked_for[0]
    plan = "\n".join(row[0] for row in await sql.fetch(f"EXPLAIN {statement}", *arguments))
    assert f"using {index}" in plan
    assert "Sort" not in plan
    assert "projection_id >" in plan.partition("Filter")[0]


async def test_three_stores_share_one_pool(postgres_dsn: str) -> None:
    pool = PostgresPool(postgres_dsn, connections_max=2)
    log = await PostgresEventLog.open(pool, utc_now)
    store = await PostgresProjectionStore.open(pool, utc_now)
    snapshots = await PostgresSnapshotStore.open(pool)
    await log.close()
    await store.save([record()], cursor_at(1))
    await snapshots.close()
    await store.close()

    assert await log.tail() == []  # whoever opened the pool closes it
    await pool.close()


async def test_updated_at_is_the_time_of_the_last_change(
    postgres_dsn: str, sql: "Sql[asyncpg.Record]"
) -> None:
    times = [Instant(f"2026-01-01T00:00:0{second}.000000Z") for second in range(3)]
    store = await PostgresProjectionStore.open(postgres_dsn, iter(times).__next__)
    for version, position in ((1, 1), (2, 2), (2, 2)):
        await store.save([record(version=version)], cursor_at(position))
    await store.close()

    for table in ("projection", "projection_checkpoint"):
        second = await sql.fetchval(f"SELECT extract(second FROM updated_at) FROM noetl.{table}")
        assert second == 1
