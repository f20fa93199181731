"""The schema: what it holds, who may make it, and how many may make it at once."""

import asyncio
import sys
from pathlib import Path

import asyncpg
import pytest

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.postgres.rows import COLUMNS
from noetl.adapters.postgres.schema import migrations
from noetl.adapters.system.clock import utc_now
from noetl.kernel.errors import SettingInvalid
from noetl.testing.histories import History, execution_ids
from tests.postgres.conftest import OpenLog
from tests.postgres.streams import sealed_append, steps

pytestmark = pytest.mark.servers

Sql = asyncpg.Connection
PROCESSES = 8
EVENT_COLUMNS = """
    event_id execution_id catalog_id parent_event_id parent_execution_id created_at event_type
    node_id node_name node_type status duration context result meta error worker_id stage_id
    frame_id tenant_id organization_id stream_id stream_version aggregate_id aggregate_type
    schema_name schema_version event_time producer causation_id correlation_id idempotency_key
    payload_ref envelope_checksum position ingest_time prev_event_id command_id canonical
    annotations"""
INDEXES = {
    "uidx_event_command_issued_command_id": True,
    "uidx_event_loop_done_loop_id": True,
    "uidx_event_loop_fanin_completed": True,
    "uidx_event_checkpoint_committed": True,
    "uidx_event_idempotency_key": True,
    "idx_event_loop_id_type": False,
    "idx_event_exec_stage_event_id_desc": False,
    "idx_event_exec_frame_event_id_desc": False,
    "idx_event_position": False,
}
OPEN_AND_SAY_SO = """
import asyncio, sys
from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.system.clock import utc_now

async def main():
    sys.stdin.readline()
    log = await PostgresEventLog.open(sys.argv[1], utc_now)
    print(await log.identity())
    await log.close()

asyncio.run(main())
"""


async def _columns(sql: "Sql[asyncpg.Record]", relation: str) -> dict[str, str]:
    rows = await sql.fetch(
        """SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
        WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum""",
        relation,
    )
    return {row["attname"]: row["type"] for row in rows}


async def test_the_columns_that_existing_queries_use_are_there(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    await open_log()
    columns = await _columns(sql, "noetl.event")
    assert set(EVENT_COLUMNS.split()) <= set(columns)
    for name in ("context", "result", "meta", "payload_ref"):
        assert columns[name] == "jsonb"


async def test_rows_are_sent_in_the_order_of_their_type(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    await open_log()
    sent, kept = await _columns(sql, "noetl.event_row"), await _columns(sql, "noetl.event")
    assert tuple(sent) == COLUMNS
    assert sent == {name: kept[name] for name in COLUMNS}


async def test_the_indexes_have_their_names_in_every_partition(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log()
    (execution,) = execution_ids(1)
    await log.append([sealed_append(execution, steps(History(execution), 1))])

    rows = await sql.fetch(
        """SELECT relname, indisunique,
            (SELECT count(*) FROM pg_inherits WHERE inhparent = indexrelid)
        FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = 'noetl.event'::regclass"""
    )

    found = {name: unique for name, unique, partitions in rows if partitions == 1}
    assert {name: found.get(name) for name in INDEXES} == INDEXES


@pytest.mark.parametrize(
    ("result", "fits"),
    [
        (None, True),
        ('{"status": "ok"}', True),
        ('{"status": "ok", "reference": null, "parent_ref": {}, "context": {"rows": 3}}', True),
        ('{"status": "ok", "rows": [1, 2, 3]}', False),
        ('{"context": {}}', False),
        ('{"status": 7}', False),
        ('{"status": null}', False),
        ('["ok"]', False),
        ('"ok"', False),
        ("null", False),
    ],
)
async def test_a_result_holds_no_inline_rows(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]", result: str | None, fits: bool
) -> None:
    log = await open_log()
    (execution,) = execution_ids(1)
    await log.append([sealed_append(execution, steps(History(execution), 1))])
    copied = ", ".join(
        name for name in COLUMNS if name not in ("event_id", "stream_version", "result")
    )
    insert = f"""
        INSERT INTO noetl.event (position, ingest_time, event_id, stream_version, result, {copied})
        SELECT 99, ingest_time, 99, 99, $1::jsonb, {copied} FROM noetl.event"""
    if fits:
        await sql.execute(insert, result)
    else:
        with pytest.raises(asyncpg.CheckViolationError, match="chk_event_result_shape"):
            await sql.execute(insert, result)


async def test_a_migration_applied_twice_changes_nothing(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log()
    identity = await log.identity()
    before = await _columns(sql, "noetl.event")
    for migration in migrations():
        await sql.execute(migration.sql)
    assert await _columns(sql, "noetl.event") == before
    assert await log.identity() == identity
    versions = [row[0] for row in await sql.fetch("SELECT version FROM noetl.schema_migration")]
    assert versions == [migration.version for migration in migrations()]


async def test_the_trigger_of_an_older_system_is_dropped(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    await sql.execute("""
        CREATE SCHEMA noetl;
        CREATE FUNCTION noetl.trg_execution_state_upsert() RETURNS trigger
            LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    """)
    await open_log()
    assert await sql.fetchval("SELECT to_regproc('noetl.trg_execution_state_upsert')") is None
    assert await sql.fetchval("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal") == 0


async def test_eight_processes_open_an_empty_database_at_once(postgres_dsn: str) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPEN_AND_SAY_SO, postgres_dsn,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    assert [process.returncode for process in processes] == [0] * PROCESSES, answers
    assert len({said for said, _ in answers}) == 1


async def test_a_role_that_may_only_read_can_open_and_read(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]", postgres_dsn: str
) -> None:
    log = await open_log()
    (execution,) = execution_ids(1)
    append = sealed_append(execution, steps(History(execution), 2))
    await log.append([append])
    role = f"reader_{await sql.fetchval('SELECT current_database()')}"
    await sql.execute(f"""
        CREATE ROLE {role} LOGIN PASSWORD 'reader';
        GRANT USAGE ON SCHEMA noetl TO {role};
        GRANT SELECT ON ALL TABLES IN SCHEMA noetl TO {role};
        GRANT SELECT ON ALL SEQUENCES IN SCHEMA noetl TO {role};
    """)
    host = postgres_dsn.rpartition("@")[2]
    try:
        reader = await open_log(dsn=f"postgresql://{role}:reader@{host}")
        assert len(await reader.tail()) == 2
        with pytest.raises(SettingInvalid, match="permission denied"):
            await reader.append([append])
        await reader.close()
    finally:
        await sql.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_positions_go_on_after_rows_that_came_another_way(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log()
    first, second = execution_ids(2)
    await log.append([sealed_append(first, steps(History(first), 3))])
    await sql.execute("SELECT setval('noetl.event_position', 0)")  # as if restored without it

    again = await open_log()
    await again.append([sealed_append(second, steps(History(second), 1))])

    assert [event.position for event in await again.tail()] == [1, 2, 3, 4]


async def test_a_role_that_does_not_wait_for_the_disk_is_made_to(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]", postgres_dsn: str
) -> None:
    database = await sql.fetchval("SELECT current_database()")
    await sql.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    log = await PostgresEventLog.open(postgres_dsn, utc_now)
    async with log._pool.connection() as connection:
        assert await connection.fetchval("SHOW synchronous_commit") == "on"
    await log.close()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in migrations()] == [
        number + 1 for number in range(len(migrations()))
    ]
    folder = Path(sys.modules[PostgresEventLog.__module__].__file__ or "").parent / "sql"
    assert len(list(folder.glob("*.sql"))) == len(migrations())
