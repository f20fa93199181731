"""How PostgreSQL refuses, for real, and what is left of a call that was stopped."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from asyncpg import exceptions

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolFailed
from noetl.servers.process import free_ports
from noetl.tools.failures import RETRYABLE_BY_KIND
from noetl.tools.postgres import PostgresTool
from noetl.tools.postgres_failures import DRIVER_ERRORS, kind_of_sqlstate, postgres_failure
from tests.tools.postgres_database import Database
from tests.tools.tool_calls import call, services

DRIVER_CLASSES = [
    cls
    for _, cls in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(cls, Exception) and not issubclass(cls, Warning)
]
SLEEPING = """SELECT count(*) FROM pg_stat_activity
    WHERE query LIKE '%pg_sleep(600%' AND state = 'active' AND pid <> pg_backend_pid()"""


@pytest.fixture
async def database(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Database]:
    tool = PostgresTool(services(tmp_path))
    yield Database(tool, postgres_dsn)
    await tool.close()


@pytest.mark.parametrize("error", DRIVER_CLASSES, ids=lambda cls: cls.__name__)
def test_t1_every_error_of_the_driver_has_a_kind(error: type[Exception]) -> None:
    assert issubclass(error, DRIVER_ERRORS)
    failed = postgres_failure(error("no"), [])
    assert failed.failure.kind in RETRYABLE_BY_KIND


@pytest.mark.parametrize(
    ("sqlstate", "kind"),
    [
        ("08006", "db_connection"),
        ("57P01", "db_connection"),
        ("53300", "db_connection"),
        ("23505", "db_constraint"),
        ("40P01", "db_deadlock"),
        ("40001", "db_deadlock"),
        ("57014", "db_timeout"),
        ("28P01", "auth"),
        ("42501", "auth"),
        ("42P01", "schema"),
        ("22012", "transform"),
        ("53100", "storage_quota"),
        ("XX000", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_code_says_which_kind_it_is(sqlstate: str | None, kind: str) -> None:
    assert kind_of_sqlstate(sqlstate) == kind


TABLES = """CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int REFERENCES parent, n int CHECK (n > 0), t text NOT NULL DEFAULT 'x');
INSERT INTO parent VALUES (1)"""


@pytest.mark.servers
@pytest.mark.parametrize(
    ("sql", "kind", "sqlstate", "constraint"),
    [
        ("INSERT INTO parent VALUES (1)", "db_constraint", "23505", "parent_pkey"),
        ("INSERT INTO child VALUES (2, 1)", "db_constraint", "23503", "child_id_fkey"),
        ("INSERT INTO child VALUES (1, 0)", "db_constraint", "23514", "child_n_check"),
        ("INSERT INTO child VALUES (1, 1, NULL)", "db_constraint", "23502", None),
        ("SELEC 1", "schema", "42601", None),
        ("SELECT * FROM nowhere", "schema", "42P01", None),
        ("SELECT nothing FROM parent", "schema", "42703", None),
        ("SELECT 1/0", "transform", "22012", None),
        ("SELECT 'x'::int", "transform", "22P02", None),
        ("SET statement_timeout = 1; SELECT pg_sleep(600)", "db_timeout", "57014", None),
        ("SET ROLE pg_monitor; CREATE TABLE public.x (a int)", "auth", "42501", None),
        ("DO $$ BEGIN RAISE EXCEPTION 'mine'; END $$", "unknown", "P0001", None),
        ("SELECT '4000-01-01 BC'::date", "transform", None, None),
    ],
)
async def test_t1_what_the_server_refuses_is_told_with_its_code(
    database: Database, sql: str, kind: str, sqlstate: str | None, constraint: str | None
) -> None:
    await database.run(TABLES)
    failed = await database.failure(sql)
    assert failed.pg is not None
    assert (failed.failure.kind, failed.pg["sqlstate"]) == (kind, sqlstate)
    assert failed.pg["code"] == failed.failure.code == sqlstate
    assert failed.pg["constraint"] == constraint
    assert failed.failure.retryable is RETRYABLE_BY_KIND[kind]
    assert (await database.run("SELECT 1 AS a"))["rows"] == [{"a": 1}]  # the tool goes on


@pytest.mark.servers
async def test_t1_a_connection_that_is_cut_may_be_tried_again(database: Database) -> None:
    failed = await database.failure("SELECT pg_terminate_backend(pg_backend_pid())")
    assert (failed.failure.kind, failed.failure.retryable) == ("db_connection", True)
    assert (await database.run("SELECT 1 AS a"))["rows"] == [{"a": 1}]


@pytest.mark.servers
async def test_t1_of_two_calls_that_block_each_other_one_fails_as_a_deadlock(
    database: Database,
) -> None:
    await database.run("CREATE TABLE t (id int, n int); INSERT INTO t VALUES (1, 0), (2, 0)")

    def crossing(first: int, second: int) -> Any:
        # Each waits inside its transaction until the other has its first row as well.
        return database.run(f"""
            SET LOCAL deadlock_timeout = '50ms';
            UPDATE t SET n = n + 1 WHERE id = {first};
            SELECT pg_advisory_lock_shared({first});
            DO $$ BEGIN WHILE (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) < 2
                LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
            UPDATE t SET n = n + 1 WHERE id = {second};
        """)

    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(crossing(1, 2), crossing(2, 1), return_exceptions=True)
    [failed] = [outcome for outcome in outcomes if isinstance(outcome, ToolFailed)]
    assert (failed.failure.kind, failed.failure.code) == ("db_deadlock", "40P01")
    assert failed.failure.retryable
    rows = (await database.run("SELECT n FROM t"))["rows"]
    assert rows == [{"n": 1}, {"n": 1}]


@pytest.mark.servers
async def test_t1_a_serialization_failure_may_be_tried_again(
    database: Database, postgres_dsn: str
) -> None:
    await database.run("CREATE TABLE t (n int); INSERT INTO t VALUES (0)")
    other = await asyncpg.connect(postgres_dsn)
    await other.execute("BEGIN; UPDATE t SET n = 1")
    running = asyncio.ensure_future(
        database.failure("BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE t SET n = 2; COMMIT")
    )
    while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
        await other.execute("SELECT pg_sleep(0.01)")
    await other.execute("COMMIT")
    failed = await running
    assert (failed.failure.kind, failed.failure.code) == ("db_deadlock", "40001")
    await other.close()


@pytest.mark.servers
@pytest.mark.parametrize("sql", ["SELECT pg_sleep(600)", "SELECT 1; SELECT pg_sleep(600)"])
async def test_t3_a_cancelled_call_leaves_no_query_running(
    database: Database, postgres_dsn: str, sql: str
) -> None:
    watcher = await asyncpg.connect(postgres_dsn)
    async with asyncio.timeout(60):
        running = asyncio.ensure_future(database.run(sql, pool={"max_size": 1}))
        while not await watcher.fetchval(SLEEPING):
            await watcher.execute("SELECT pg_sleep(0.01)")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while await watcher.fetchval(SLEEPING):
            await watcher.execute("SELECT pg_sleep(0.01)")
        value = await database.run("SELECT 1 AS a", pool={"max_size": 1})
    assert value["rows"] == [{"a": 1}]
    await watcher.close()


@pytest.mark.servers
async def test_t3_a_call_that_takes_too_long_is_cancelled_and_undone(
    database: Database, postgres_dsn: str
) -> None:
    await database.run("CREATE TABLE t (a int)")
    failed = await database.failure(
        "INSERT INTO t VALUES (1); SELECT pg_sleep(600)", timeout_seconds=0.5
    )
    assert (failed.failure.kind, failed.failure.retryable) == ("db_timeout", True)
    watcher = await asyncpg.connect(postgres_dsn)
    while await watcher.fetchval(SLEEPING):
        await watcher.execute("SELECT pg_sleep(0.01)")
    assert await watcher.fetchval("SELECT count(*) FROM t") == 0
    await watcher.close()


@pytest.mark.servers
async def test_a_pool_that_is_full_says_so(database: Database, postgres_dsn: str) -> None:
    pool = {"max_size": 1, "timeout": 0.2, "max_waiting": 1}
    watcher = await asyncpg.connect(postgres_dsn)
    holding = asyncio.ensure_future(database.run("SELECT pg_sleep(600)", pool=pool))
    while not await watcher.fetchval(SLEEPING):
        await watcher.execute("SELECT pg_sleep(0.01)")
    waiting = asyncio.ensure_future(database.failure("SELECT 1", pool=pool))
    await asyncio.sleep(0)
    refused = await database.failure("SELECT 1", pool=pool)
    assert "max_waiting" in refused.failure.message
    late = await waiting
    assert "max_size" in late.failure.message
    assert late.failure.kind == refused.failure.kind == "db_connection"
    holding.cancel()
    await asyncio.wait([holding])
    await watcher.close()


@pytest.mark.servers
async def test_t4_wrong_passwords_and_databases_are_told_without_the_secret(
    database: Database,
) -> None:
    right = dict(database.fields)
    database.fields["db_password"] = "wrong-and-secret"
    failed = await database.failure("SELECT 1")
    assert (failed.failure.kind, failed.failure.code) == ("auth", "28P01")
    database.fields = right | {"db_name": "no_such_database"}
    failed = await database.failure("SELECT 1")
    assert (failed.failure.kind, failed.failure.code) == ("not_found", "3D000")


@pytest.mark.servers
async def test_t4_a_message_of_the_server_is_scrubbed(database: Database) -> None:
    password = database.fields["db_password"]
    failed = await database.failure(f"SELECT '{password}'::int")
    assert "***" in failed.failure.message


async def test_t1_a_server_that_is_away_may_be_tried_again(tmp_path: Path) -> None:
    [port] = free_ports(1)
    tool = PostgresTool(services(tmp_path))
    data = {"host": "127.0.0.1", "port": port, "user": "u", "password": "hidden", "db": "d"}
    credential = OpenCredential(name="pg", type="postgres", data=data)
    with pytest.raises(ToolFailed) as raised:
        await tool.run(call("postgres", {"query": "SELECT 1"}, credentials={"": credential}))
    assert (raised.value.failure.kind, raised.value.failure.retryable) == ("db_connection", True)
    assert "PostgreSQL cannot be reached: nobody listens there; check the address" in str(
        raised.value
    )
    assert "hidden" not in str(raised.value)
    await tool.close()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"query": "SELECT 1"}, "auth: NAME"),
        ({"query": "SELECT 1", "db_host": "h"}, "db_name, db_user"),
        ({"query": "", "db_host": "h"}, "no SQL"),
        ({"query": "SELECT 1", "db_host": "h", "pool": {"max_size": 0}}, "max_size"),
        ({"query": "SELECT 1", "db_host": "h", "pool": {"max_size": "x"}}, "pool"),
        ({"query": "COPY t FROM STDIN", "db_host": "h"}, "transfer"),
    ],
)
async def test_t4_what_is_missing_is_named(
    tmp_path: Path, parameters: dict[str, Any], words: str
) -> None:
    tool = PostgresTool(services(tmp_path))
    with pytest.raises(ToolFailed, match=words) as raised:
        await tool.run(call("postgres", parameters))
    assert raised.value.failure.kind in ("client_error", "schema")


def test_reading_has_no_effect(tmp_path: Path) -> None:
    tool = PostgresTool(services(tmp_path))
    assert not tool.has_effect({"query": "SELECT * FROM t"})
    assert tool.has_effect({"query": "SELECT * FROM t FOR UPDATE"})
