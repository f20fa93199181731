"""The postgres tool against a real server: statements, transactions, types, sessions."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from noetl.tools.credential_fields import postgres_fields
from noetl.tools.postgres import PostgresTool
from noetl.tools.postgres_pools import PostgresPools, pool_options
from tests.tools.postgres_database import Database
from tests.tools.tool_calls import services

pytestmark = pytest.mark.servers


@pytest.fixture
async def database(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Database]:
    tool = PostgresTool(services(tmp_path))
    yield Database(tool, postgres_dsn)
    await tool.close()


async def test_rows_come_with_their_columns_and_again_as_the_first_command(
    database: Database,
) -> None:
    value = await database.run("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL")
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    told = {"status": "ok", "columns": ["a", "b"], "rows": rows, "row_count": 2}
    assert value == told | {"statement_count": 1, "command_0": told}

    value = await database.run("SELECT 1 AS a WHERE false")
    assert (value["columns"], value["rows"], value["row_count"]) == (["a"], [], 0)


async def test_changes_are_counted(database: Database) -> None:
    value = await database.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)")
    assert (value["affected_rows"], value["row_count"], value["message"]) == (2, 2, "INSERT 0 2")
    assert value["command_0"]["message"] == "CREATE TABLE"
    value = await database.run("UPDATE t SET a = 3 WHERE a = 1 RETURNING a")
    assert value["rows"] == [{"a": 3}]
    assert (await database.run("DELETE FROM t"))["affected_rows"] == 2


async def test_blocks_comments_and_quotes_arrive_whole(database: Database) -> None:
    value = await database.run("""
        -- it's a comment; not a statement
        DO $$ BEGIN CREATE TABLE t (a text); INSERT INTO t VALUES ('x;y'); END $$;
        /* nested /* ; */ ; */
        INSERT INTO t VALUES (E'a\\';b'), ('$$;');
        CREATE FUNCTION two() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END;
        SELECT a, two() FROM t ORDER BY a;
    """)
    assert [row["a"] for row in value["rows"]] == ["$$;", "a';b", "x;y"]
    assert value["rows"][0]["two"] == 2
    assert value["statement_count"] == 4


async def test_all_statements_of_a_call_happen_or_none(database: Database) -> None:
    await database.run("CREATE TABLE t (a int)")
    failed = await database.failure(["INSERT INTO t VALUES (1)", "SELECT 1/0", "SELECT 2"])
    assert failed.failure.detail == {"statement": 1}
    assert "statement 2" in failed.failure.message
    assert (await database.run("SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]


async def test_a_text_with_its_own_transactions_is_run_as_written(database: Database) -> None:
    await database.run("CREATE TABLE t (a int)")
    value = await database.run("""
        BEGIN; INSERT INTO t VALUES (1); COMMIT;
        BEGIN; INSERT INTO t VALUES (2); ROLLBACK;
        BEGIN; SELECT a FROM t; END
    """)
    assert value["rows"] == [{"a": 1}]
    failed = await database.failure("INSERT INTO t VALUES (3); BEGIN; INSERT INTO t VALUES (4)")
    assert "COMMIT" in failed.failure.message
    await database.failure("BEGIN; INSERT INTO t VALUES (5); SELECT 1/0; COMMIT")
    rows = (await database.run("SELECT a FROM t ORDER BY a"))["rows"]
    assert [row["a"] for row in rows] == [1, 3]


@pytest.mark.parametrize(
    "sql",
    [
        "VACUUM t",
        "INSERT INTO t VALUES (1); VACUUM t; SELECT 1",
        "CREATE INDEX CONCURRENTLY i ON t (a); DROP INDEX CONCURRENTLY i",
        "DO $$ BEGIN INSERT INTO t VALUES (1); COMMIT; END $$; SELECT 1",
        "CREATE PROCEDURE p() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'",
        "SAVEPOINT a; INSERT INTO t VALUES (1); ROLLBACK TO SAVEPOINT a",
        "REINDEX TABLE CONCURRENTLY t; SELECT 1",
        "CREATE SCHEMA s; CREATE TABLE s.t (a int); DROP SCHEMA s CASCADE",
    ],
)
async def test_what_cannot_run_in_a_transaction_runs_alone(database: Database, sql: str) -> None:
    await database.run("CREATE TABLE t (a int)")
    await database.run(sql)


async def test_a_database_can_be_made_and_dropped(database: Database) -> None:
    name = f"{database.fields['db_name']}_other"
    await database.run(f"CREATE DATABASE {name}; DROP DATABASE {name}")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1::bigint * 9007199254740993", 9007199254740993),
        ("1.50::numeric", 1.5),
        ("100.00::numeric(10,2)", 100),
        ("'NaN'::numeric", "NaN"),
        ("'Infinity'::float8", "Infinity"),
        ("123456789012345678901234::numeric", 1.2345678901234568e23),
        ("true", True),
        ("'2024-01-02 03:04:05.6+02'::timestamptz", "2024-01-02T01:04:05.600000+00:00"),
        ("'2024-01-02 03:04:05'::timestamp", "2024-01-02T03:04:05"),
        ("'infinity'::timestamptz", "infinity"),
        ("'-infinity'::date", "-infinity"),
        ("'2024-01-02'::date", "2024-01-02"),
        ("'03:04'::time", "03:04:00"),
        ("'1 year 2 mons 3 days 4:05:06.5'::interval", "1 year 2 mons 3 days 04:05:06.5"),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        ("""'{"a": [1, null]}'::jsonb""", {"a": [1, None]}),
        ("'[1]'::json", [1]),
        ("'null'::jsonb", None),
        (r"'\x00ff'::bytea", "AP8="),
        ("ARRAY[1, NULL, 3]", [1, None, 3]),
        ("ARRAY[[1.5], [2]]::numeric[][]", [[1.5], [2]]),
        ("""ARRAY['{"a":1}'::jsonb]""", [{"a": 1}]),
        ("ARRAY['1 day'::interval]", ["1 day"]),
        ("ROW(1, now() IS NULL, '{}'::jsonb)", [1, False, {}]),
        ("int4range(1, 5)", "[1,5)"),
        ("'empty'::int4range", "empty"),
        ("'10.0.0.0/8'::inet", "10.0.0.0/8"),
        ("B'101'", "101"),
        ("'$1.50'::money", "$1.50"),
        ("point(1, 2)", [1.0, 2.0]),
        ("NULL::int", None),
    ],
)
async def test_values_are_plain(database: Database, expression: str, expected: Any) -> None:
    [row] = (await database.run(f"SELECT {expression} AS v"))["rows"]
    assert (row["v"], type(row["v"])) == (expected, type(expected))


async def test_rows_of_a_named_type_have_names(database: Database) -> None:
    await database.run("CREATE TYPE pair AS (a int, b jsonb); CREATE TYPE mood AS ENUM ('good')")
    value = await database.run("""SELECT (1, '{"x": 1}')::pair AS p, 'good'::mood AS m""")
    assert value["rows"] == [{"p": {"a": 1, "b": {"x": 1}}, "m": "good"}]


async def test_parameters_fit_their_types_as_text_or_number(database: Database) -> None:
    value = await database.run(
        """SELECT $1::int AS a, $2::numeric AS b, $3::timestamptz AS c, $4::jsonb AS d,
        $5::text[] AS e, $6::text AS f, $7::bool AS g, $8::date AS h, $9::bytea AS i,
        $10::interval AS j, $11::uuid AS k""",
        params=[
            "5", 1.5, "2024-01-02T03:04:05Z", {"x": [1]}, ["p", "q"], 7, "yes", "2024-01-02",
            "AP8=", 90, "00000000-0000-0000-0000-000000000001",
        ],
    )  # fmt: skip
    assert value["rows"] == [
        {
            "a": 5, "b": 1.5, "c": "2024-01-02T03:04:05+00:00", "d": {"x": [1]}, "e": ["p", "q"],
            "f": "7", "g": True, "h": "2024-01-02", "i": "AP8=", "j": "00:01:30",
            "k": "00000000-0000-0000-0000-000000000001",
        }
    ]  # fmt: skip


async def test_names_are_bound_and_never_read_as_sql(database: Database) -> None:
    await database.run("CREATE TABLE t (a text, n int)")
    value = await database.run(
        "INSERT INTO t VALUES (:word, %(n)s); SELECT a, n::text AS n FROM t WHERE a = :word",
        params={"word": "'; DROP TABLE t; --", "n": 1},
    )
    assert value["rows"] == [{"a": "'; DROP TABLE t; --", "n": "1"}]


async def test_t5_a_call_finds_nothing_of_another_in_its_session(database: Database) -> None:
    pool = {"max_size": 1}
    await database.run(
        "CREATE TEMP TABLE mine (a int); SET work_mem = '1MB'; SELECT pg_advisory_lock(1)",
        pool=pool,
    )
    value = await database.run(
        "SELECT to_regclass('mine')::text AS mine, current_setting('work_mem') AS work_mem,"
        " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks",
        pool=pool,
    )
    assert value["rows"] == [{"mine": None, "work_mem": "4MB", "locks": 0}]


async def test_t5_calls_run_side_by_side(database: Database, postgres_dsn: str) -> None:
    async with asyncio.timeout(60):
        calls = [database.run("SELECT pg_advisory_lock_shared(7)") for _ in range(5)]
        holder = await asyncpg.connect(postgres_dsn)
        await holder.execute("SELECT pg_advisory_lock(7)")
        running = asyncio.gather(*calls)
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while await holder.fetchval(waiting) < 5:
            assert not (await asyncio.wait([running], timeout=0.01))[0]
        await holder.close()
        assert len(await running) == 5


async def test_a_schema_may_be_chosen(database: Database) -> None:
    await database.run("CREATE SCHEMA other; CREATE TABLE other.t (a int)")
    assert (await database.run("SELECT * FROM t", schema="other"))["row_count"] == 0


async def test_pools_that_nobody_uses_are_closed_when_there_are_too_many(
    database: Database, postgres_dsn: str
) -> None:
    pools = PostgresPools(pools_max=2)
    fields = postgres_fields(database.fields)
    async with pools.session(fields, pool_options({"name": "kept"})) as held:
        for name in "abcd":
            async with pools.session(fields, pool_options({"name": name})) as session:
                await session.connection.execute("SELECT 1")
        assert await held.connection.fetchval("SELECT 1") == 1
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'noetl'"
        while await held.connection.fetchval(count) > 2:
            await held.connection.fetchval("SELECT pg_sleep(0.01)")
    await pools.close()
