"""Sessions that calls share: statements stay prepared, nothing else stays behind."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from noetl.tools.postgres import PostgresTool
from noetl.tools.postgres_session import first_rows
from tests.tools.postgres_database import Database
from tests.tools.tool_calls import services

pytestmark = pytest.mark.servers

ONE = {"max_size": 1}
KEPT = "SELECT statement FROM pg_prepared_statements WHERE name LIKE 'noetl%' ORDER BY statement"


@pytest.fixture
async def database(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Database]:
    tool = PostgresTool(services(tmp_path))
    yield Database(tool, postgres_dsn)
    await tool.close()


async def twice(database: Database, query: str, **parameters: Any) -> Any:
    await database.run(query, pool=ONE, **parameters)
    return await database.run(query, pool=ONE, **parameters)


async def test_a_text_that_comes_again_is_prepared_once(database: Database) -> None:
    await database.run("CREATE TABLE t (a int)", pool=ONE)
    for number in range(3):
        await database.run("INSERT INTO t (a) VALUES (:a)", params={"a": number}, pool=ONE)
        await database.run(f"SELECT {number} AS n", pool=ONE)
    kept = await database.run(KEPT, pool=ONE)
    assert [row["statement"] for row in kept["rows"]] == ["INSERT INTO t (a) VALUES ($1)"]
    assert (await database.run("SELECT a FROM t ORDER BY a", pool=ONE))["row_count"] == 3


@pytest.mark.parametrize(
    ("before", "after"), [("int", "text"), ("text", "int"), ("int", "jsonb"), ("int", "int[]")]
)
async def test_a_kept_statement_follows_its_table_when_that_is_made_anew(
    database: Database, postgres_dsn: str, before: str, after: str
) -> None:
    values: dict[str, Any] = {"int": 1, "text": "x", "jsonb": {"a": 1}, "int[]": [1]}
    other = Database(PostgresTool(services(Path())), postgres_dsn)
    write, read = "INSERT INTO t (a) VALUES (:a)", "SELECT * FROM t"
    await other.run(f"CREATE TABLE t (a {before})")
    await twice(database, write, params={"a": values[before]})
    await twice(database, read)
    await other.run(f"DROP TABLE t; CREATE TABLE t (b int, a {after})")
    await database.run(write, params={"a": values[after]}, pool=ONE)
    assert (await database.run(read, pool=ONE))["rows"] == [{"b": None, "a": values[after]}]
    await other.tool.close()


async def test_a_transaction_whose_statement_is_outdated_is_run_again_as_a_whole(
    database: Database, postgres_dsn: str
) -> None:
    other = Database(PostgresTool(services(Path())), postgres_dsn)
    await other.run("CREATE TABLE n (a int); CREATE TABLE t (a int)")
    both = "INSERT INTO n (a) VALUES (1); INSERT INTO t (a) VALUES (:a)"
    await twice(database, both, params={"a": 5})
    await other.run("DROP TABLE t; CREATE TABLE t (a text)")
    value = await database.run(both, params={"a": 5}, pool=ONE)
    assert value["statement_count"] == 2
    found = await database.run("SELECT (SELECT count(*) FROM n) AS n, a FROM t", pool=ONE)
    assert found["rows"] == [{"n": 3, "a": "5"}]
    await other.tool.close()


async def test_what_is_wrong_stays_wrong(database: Database) -> None:
    await database.run("CREATE TABLE t (a int PRIMARY KEY)", pool=ONE)
    write = "INSERT INTO t (a) VALUES (:a)"
    await twice(database, f"{write} ON CONFLICT DO NOTHING", params={"a": 1})
    for _ in range(3):
        failed = await database.failure(write, params={"a": 1}, pool=ONE)
        assert (failed.failure.kind, failed.failure.code) == ("db_constraint", "23505")
    await database.run("DROP TABLE t", pool=ONE)
    failed = await database.failure(write, params={"a": 1}, pool=ONE)
    assert (failed.failure.kind, failed.failure.code) == ("schema", "42P01")


@pytest.mark.parametrize(
    "leaves",
    [
        "SET work_mem = '1MB'",
        "SELECT set_config('work_mem', '1MB', false)",
        "CREATE TEMP TABLE mine (a int)",
        "SELECT 1 AS a INTO TEMP mine",
        "SELECT pg_advisory_lock(1)",
        "LISTEN news",
        "PREPARE theirs AS SELECT 1",
        "BEGIN; DECLARE mine CURSOR WITH HOLD FOR SELECT 1; COMMIT",
        "CREATE SEQUENCE s; SELECT nextval('s')",
        "SET ROLE pg_monitor",
    ],
)
async def test_t5_nothing_of_a_call_is_left_to_the_next(database: Database, leaves: str) -> None:
    await twice(database, "SELECT 1 AS a")
    await database.run(leaves, pool=ONE)
    value = await database.run(
        "SELECT current_setting('work_mem') AS work_mem, to_regclass('mine')::text AS mine,"
        " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks,"
        " (SELECT count(*) FROM pg_listening_channels()) AS channels,"
        " (SELECT count(*) FROM pg_prepared_statements WHERE from_sql) AS statements,"
        " (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,"
        " current_user = session_user AS is_itself",
        pool=ONE,
    )
    assert value["rows"] == [
        {
            "work_mem": "4MB", "mine": None, "locks": 0, "channels": 0, "statements": 0,
            "cursors": 0, "is_itself": True,
        }
    ]  # fmt: skip
    assert (await twice(database, "SELECT 1 AS a"))["rows"] == [{"a": 1}]


async def test_t5_a_number_of_a_sequence_is_told_to_nobody_else(database: Database) -> None:
    await database.run("CREATE TABLE t (id serial, a int)", pool=ONE)
    await database.run("INSERT INTO t (a) VALUES (1)", pool=ONE)
    failed = await database.failure("SELECT lastval()", pool=ONE)
    assert failed.failure.code == "55000"
    value = await database.run("INSERT INTO t (a) VALUES (1); SELECT lastval() AS n", pool=ONE)
    assert value["rows"] == [{"n": 2}]


async def test_t3_a_stopped_call_takes_its_connection_along(database: Database) -> None:
    await database.run("CREATE TABLE t (a int)", pool=ONE)
    write = "INSERT INTO t (a) SELECT i FROM generate_series(1, :n) AS i"
    await twice(database, write, params={"n": 1})
    failed = await database.failure(write, params={"n": 10**9}, pool=ONE, timeout_seconds=0.3)
    assert failed.failure.kind == "db_timeout"
    async with asyncio.timeout(30):
        value = await database.run("SELECT count(*) AS n FROM t", pool=ONE)
    assert value["rows"] == [{"n": 2}]


async def test_idle_connections_are_closed_in_the_end(
    database: Database, postgres_dsn: str
) -> None:
    await database.run("SELECT 1 AS a", pool={"max_idle": 0.05, "min_size": 3})
    other = Database(PostgresTool(services(Path())), postgres_dsn)
    count = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
    async with asyncio.timeout(30):
        while (await other.run(count))["rows"][0]["n"] > 1:
            await other.run("SELECT pg_sleep(0.01)")
    assert (await database.run("SELECT 1 AS a"))["rows"] == [{"a": 1}]
    await other.tool.close()


async def test_more_rows_than_are_asked_for_at_first_come_all(database: Database) -> None:
    query = "SELECT i FROM generate_series(1, :n) AS i ORDER BY i"
    for rows in (2_047, 2_048, 2_049, 5_000):
        value = await database.run(query, params={"n": rows}, pool=ONE)
        assert [row["i"] for row in value["rows"]] == list(range(1, rows + 1))


async def test_a_long_read_is_run_once_whatever_its_view_does(database: Database) -> None:
    await database.run("CREATE SEQUENCE runs")
    await database.run(
        "CREATE VIEW v AS SELECT n, i FROM nextval('runs') AS n, generate_series(1, 3000) AS i"
    )
    for run in (1, 2, 3):
        value = await database.run("SELECT n, i FROM v WHERE i > 0", pool=ONE)
        assert (value["row_count"], value["rows"][0]["n"]) == (3_000, run)


async def test_a_function_that_nobody_knows_is_never_run_twice(database: Database) -> None:
    await database.run("CREATE SEQUENCE runs", pool=ONE)
    query = "SELECT nextval('runs') AS n, i FROM generate_series(1, :rows) AS i"
    for rows, first in ((1, 1), (2_100, 2), (1, 2_102)):
        value = await database.run(query, params={"rows": rows}, pool=ONE)
        assert value["rows"][0]["n"] == first


async def test_the_driver_gives_a_few_rows_in_one_round_trip(postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    prepared = await connection.prepare("SELECT i FROM generate_series(1, 9) AS i")
    rows = await first_rows(prepared, [], 2)
    assert rows is not None, "slower without; see what the driver offers instead"
    assert [row["i"] for row in rows] == [1, 2]
    await connection.close()
