"""The duckdb tool on real files: what it refuses, calls that stop, files that are held."""

import asyncio
import subprocess
import sys
from pathlib import Path

import duckdb
import psutil
import pytest

from noetl.domain.credential import OpenCredential
from noetl.tools import duckdb as module
from noetl.tools.duckdb import DuckdbTool, database_path
from noetl.tools.duckdb_credentials import statements_for
from tests.tools.duckdb_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.duckdb_fixtures import failure, run
from tests.tools.tool_calls import EXECUTION, services

ENDLESS = "SELECT sum(a.range * b.range) AS s FROM range(10000000) a, range(10000000) b"
HOLDER = """
import sys, duckdb
held = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("SELEC 1", "schema"),
        ("FROM nowhere", "schema"),
        ("SELECT nothing", "schema"),
        ("SELECT 'x'::int", "transform"),
        ("SELECT * FROM '/no/such/file.csv'", "storage_access"),
        ("SELECT $1", "transform"),
    ],
)
async def test_t1_what_duckdb_refuses_has_a_kind(tool: DuckdbTool, query: str, kind: str) -> None:
    assert (await failure(tool, query)).failure.kind == kind
    assert (await run(tool, "SELECT 1 AS a"))["rows"] == [{"a": 1}]


@pytest.mark.parametrize(
    ("query", "extension"),
    [
        ("INSTALL spatial", "spatial"),
        ("FORCE INSTALL 'spatial' FROM community", "spatial"),
        ("LOAD spatial", "spatial"),
        ("SELECT * FROM 'https://localhost:1/x.parquet'", "httpfs"),
        ("ATTACH 'host=nowhere' AS p (TYPE postgres)", "postgres"),
        ("SELECT 1; ATTACH 'a.sqlite' AS s (TYPE sqlite)", "sqlite"),
    ],
)
async def test_nothing_is_downloaded_and_the_missing_extension_is_named(
    tool: DuckdbTool, query: str, extension: str
) -> None:
    failed = await failure(tool, query)
    assert failed.failure.code == "extension_missing"
    assert extension in failed.failure.message
    assert not failed.failure.retryable


@pytest.mark.parametrize(
    "credential",
    [
        OpenCredential(name="pg", type="postgres", data={
            "host": "h", "db": "d", "user": "u", "password": "hidd'en"}),
        OpenCredential(name="lake", type="s3", data={
            "key_id": "k", "secret": "hidd'en", "endpoint": "http://e:1/", "use_ssl": False}),
        OpenCredential(name="bucket", type="gcs_hmac", data={"key_id": "k", "secret": "hidd'en"}),
    ],
    ids=lambda credential: credential.type,
)  # fmt: skip
async def test_t4_credentials_become_secrets_that_no_failure_shows(
    tool: DuckdbTool, credential: OpenCredential
) -> None:
    for _, sql in statements_for({"mine": credential}, attach=True):
        assert len(duckdb.extract_statements(sql)) == 1
        assert '"mine"' in sql
    failed = await failure(tool, "SELECT 1", credentials={"mine": credential})
    assert failed.failure.code == "extension_missing"
    assert "hidd" not in failed.failure.message


async def test_t3_a_cancelled_call_stops_its_query_and_frees_the_file(
    tool: DuckdbTool, tmp_path: Path
) -> None:
    path = database_path(services(tmp_path), EXECUTION)
    async with asyncio.timeout(60):
        running = asyncio.ensure_future(run(tool, f"CREATE TABLE t (a int); {ENDLESS}"))
        while not path.exists():
            assert not (await asyncio.wait([running], timeout=0.01))[0]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert str(path) not in [file.path for file in psutil.Process().open_files()]
        assert (await failure(tool, "FROM t")).failure.kind == "schema"


async def test_t3_a_call_that_takes_too_long_is_stopped(tool: DuckdbTool) -> None:
    failed = await failure(tool, ENDLESS, timeout_seconds=0.3)
    assert (failed.failure.kind, failed.failure.retryable) == ("db_timeout", True)


async def test_t5_calls_on_one_file_take_turns_and_others_do_not_wait(tool: DuckdbTool) -> None:
    async with asyncio.timeout(60):
        await run(tool, "CREATE TABLE t (n int); INSERT INTO t VALUES (0)")
        long = asyncio.ensure_future(run(tool, ENDLESS))
        steps = [asyncio.ensure_future(run(tool, "UPDATE t SET n = n + 1")) for _ in range(5)]
        value = await run(tool, "SELECT 1 AS a", database=":memory:")
        assert value["rows"] == [{"a": 1}]
        assert not any(step.done() for step in steps)
        long.cancel()
        await asyncio.gather(*steps)
        assert (await run(tool, "FROM t"))["rows"] == [{"n": 5}]


async def test_a_file_that_another_process_holds_is_waited_for(
    tool: DuckdbTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shared.duckdb"
    holder = subprocess.Popen(  # noqa: ASYNC220 - it is only started here
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert await asyncio.to_thread(holder.stdout.readline) == b"held\n"

    with monkeypatch.context() as patched:
        patched.setattr(module, "LOCK_TRIES_MAX", 2)
        failed = await failure(tool, "SELECT 1", database=str(path))
    assert (failed.failure.kind, failed.failure.retryable) == ("db_connection", True)

    waiting = asyncio.ensure_future(run(tool, "SELECT 1 AS a", database=str(path)))
    await asyncio.wait([waiting], timeout=0.05)
    holder.stdin.close()
    assert (await waiting)["rows"] == [{"a": 1}]
    await asyncio.to_thread(holder.wait)
    holder.stdout.close()


async def test_files_are_closed_after_each_call(tool: DuckdbTool, tmp_path: Path) -> None:
    await run(tool, "CREATE TABLE t (a int)")
    opened = [file.path for file in psutil.Process().open_files()]
    assert not [path for path in opened if path.startswith(str(tmp_path))]
