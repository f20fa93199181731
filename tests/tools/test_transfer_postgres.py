"""PostgreSQL as an end of a transfer: its types, its cursor, its transaction."""

import json
from decimal import Decimal
from pathlib import Path

import asyncpg
import pytest

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolFailed
from tests.tools.tool_calls import credential
from tests.tools.transfer_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.transfer_fixtures import Received, Run

pytestmark = pytest.mark.servers


async def test_http_to_postgres_fits_every_field_to_its_column(
    run_transfer: Run,
    endpoint: Received,
    sql: "asyncpg.Connection[asyncpg.Record]",
    pg_local: OpenCredential,
) -> None:
    await sql.execute(
        "CREATE TABLE posts (id serial PRIMARY KEY, post_id integer, user_id text,"
        " title text, author jsonb, fetched_at timestamptz DEFAULT now())"
    )
    mapping = {"user_id": "userId", "post_id": "id", "title": "title", "author": "author"}
    target = {"type": "postgres", "auth": "pg_local", "table": "public.posts", "mapping": mapping}

    value = await run_transfer(
        {"type": "http", "url": f"{endpoint.url}/posts", "method": "GET"},
        target,
        credentials={"": pg_local},
    )

    assert value["rows_transferred"] == 25
    assert value["target_table"] == "public.posts"
    row = await sql.fetchrow("SELECT * FROM posts WHERE post_id = 3")
    assert row is not None
    assert (row["user_id"], row["title"]) == ("1", "title 3")
    assert json.loads(row["author"]) == {"name": "Ada"}
    assert row["fetched_at"] is not None


async def test_postgres_to_postgres_keeps_every_type(
    run_transfer: Run, sql: "asyncpg.Connection[asyncpg.Record]", pg_local: OpenCredential
) -> None:
    columns = (
        "id bigint PRIMARY KEY, exact numeric, day date, at timestamptz, raw bytea, doc jsonb,"
        " tags text[], span interval, code uuid, ratio double precision, ok boolean"
    )
    await sql.execute(f'CREATE TABLE "from here" ({columns})')
    await sql.execute(f"CREATE TABLE there ({columns})")
    await sql.execute(
        """INSERT INTO "from here" SELECT n, 12345678901234567890.123456789, '2026-02-28',
        '2026-02-28 12:00:00.123456+02', '\\x00ff', '{"a": [1, "x"]}', ARRAY['a', NULL, 'b,c'],
        '1 mon 2 days 03:04:05.5', gen_random_uuid(), 'NaN', n % 2 = 0
        FROM generate_series(1, 2500) AS n"""
    )
    side = {"type": "postgres", "auth": "pg_local"}

    value = await run_transfer(
        {**side, "table": "from here"},
        {**side, "table": "there"},
        credentials={"source": pg_local, "target": pg_local},
    )

    assert (value["rows_transferred"], value["chunks_processed"]) == (2500, 3)
    different = 'SELECT * FROM "from here" EXCEPT SELECT * FROM there'
    assert await sql.fetch(different) == []
    assert await sql.fetchval("SELECT exact FROM there LIMIT 1") == Decimal(
        "12345678901234567890.123456789"
    )


async def test_postgres_upserts_replaces_and_undoes(
    run_transfer: Run,
    database: Path,
    sql: "asyncpg.Connection[asyncpg.Record]",
    pg_local: OpenCredential,
) -> None:
    await sql.execute('CREATE TABLE "Odd;Name" (id int PRIMARY KEY, "a b" text NOT NULL)')
    await sql.execute("""INSERT INTO "Odd;Name" VALUES (1, 'before'), (900, 'stays')""")
    here = {"type": "sqlite", "database": str(database)}
    there = {"type": "postgres", "auth": "pg_local", "table": "Odd;Name"}
    given = {"credentials": {"": pg_local}, "mapping": {"id": "id", "a b": "word"}}
    everything = {**here, "table": "numbers"}

    await run_transfer(everything, there, mode="upsert", key=["id"], chunk_size=10, **given)
    assert await sql.fetchval('SELECT count(*) FROM "Odd;Name"') == 26
    assert await sql.fetchval('SELECT "a b" FROM "Odd;Name" WHERE id = 1') == "word 1"

    twice = {**here, "query": "SELECT 1 AS id, 'first' AS word UNION ALL SELECT 1, 'last'"}
    await run_transfer(twice, there, mode="upsert", key="id", **given)
    assert await sql.fetchval('SELECT "a b" FROM "Odd;Name" WHERE id = 1') == "last"

    broken = {**here, "query": "SELECT id, nullif(word, 'word 24') AS word FROM numbers"}
    with pytest.raises(ToolFailed) as raised:
        await run_transfer(broken, there, mode="replace", chunk_size=5, **given)
    assert raised.value.failure.kind == "db_constraint"
    assert raised.value.pg is not None
    assert raised.value.pg["sqlstate"] == "23502"
    assert await sql.fetchval('SELECT count(*) FROM "Odd;Name"') == 26

    await run_transfer(everything, there, mode="replace", **given)
    assert await sql.fetchval('SELECT count(*) FROM "Odd;Name"') == 25


async def test_a_large_table_is_read_by_a_cursor_that_cannot_write(
    run_transfer: Run,
    database: Path,
    sql: "asyncpg.Connection[asyncpg.Record]",
    pg_local: OpenCredential,
) -> None:
    await sql.execute("CREATE TABLE kept (id int)")
    side = {"type": "postgres", "auth": "pg_local"}
    target = {"type": "sqlite", "database": str(database), "table": "taken"}

    value = await run_transfer(
        {**side, "query": "SELECT n AS id, 'w' AS word FROM generate_series(1000, 60000) n"},
        target,
        credentials={"": pg_local},
    )
    assert (value["rows_transferred"], value["chunks_processed"]) == (59_001, 60)

    with pytest.raises(ToolFailed, match="read-only"):
        await run_transfer(
            {**side, "query": "INSERT INTO kept VALUES (1) RETURNING id"},
            target,
            credentials={"": pg_local},
        )


async def test_a_wrong_password_fails_without_being_shown(
    run_transfer: Run, database: Path, postgres_dsn: str
) -> None:
    wrong = credential("bad", connection_string=postgres_dsn, password="hunter22")

    with pytest.raises(ToolFailed) as raised:
        await run_transfer(
            {"type": "sqlite", "database": str(database), "table": "numbers"},
            {"type": "postgres", "auth": "bad", "table": "t"},
            credentials={"": wrong},
        )

    assert raised.value.failure.kind == "auth"
    assert "hunter22" not in raised.value.failure.message
