"""One DuckDB file for many calls: of one process, of several, and attached to other databases."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetl.kernel.ids import ExecutionId, StageId
from noetl.ports.cursor import ClaimRequest
from noetl.tools import duckdb as module
from noetl.tools import duckdb_session
from noetl.tools.cursor_duckdb import DuckdbCursor
from noetl.tools.duckdb import DuckdbTool
from tests.tools.duckdb_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.duckdb_fixtures import failure, run
from tests.tools.tool_calls import call, services

ROWS_IN_A_PROCESS = """
import asyncio, sys
from pathlib import Path
from noetl.kernel.ids import StageId
from noetl.tools.duckdb import DuckdbTool
from tests.tools.tool_calls import call, services

async def main():
    tool = DuckdbTool(services(Path(sys.argv[1])))
    async def row(number):
        query = {"database": "a.duckdb", "query": f"INSERT INTO t VALUES ({number})"}
        await tool.run(call("duckdb", query, stage_id=StageId("1")))
    for start in range(0, 20, 5):
        await asyncio.gather(*(row(number) for number in range(start, start + 5)))
    await tool.close()

asyncio.run(main())
"""


async def row(tool: DuckdbTool, query: str, **parameters: Any) -> Any:
    """A call of a row of a loop."""
    given = {"database": "a.duckdb", "query": query, **parameters}
    return (await tool.run(call("duckdb", given, stage_id=StageId("1")))).value


def files(folder: Path) -> list[str]:
    opened = [Path(file.path) for file in psutil.Process().open_files()]
    return [path.name for path in opened if path.is_relative_to(folder)]


async def test_rows_keep_the_file_open_for_a_moment(
    tool: DuckdbTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(tool, "CREATE TABLE t (n int)", database="a.duckdb")
    assert files(tmp_path) == []
    await asyncio.gather(*(row(tool, f"INSERT INTO t VALUES ({n})") for n in range(10)))
    assert "a.duckdb" in files(tmp_path)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.01)
    assert (await row(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 10}]
    async with asyncio.timeout(30):
        while await asyncio.to_thread(files, tmp_path):
            pass


@pytest.mark.parametrize(
    ("leaves", "looks", "found"),
    [
        ("SET threads = 1; SELECT 1", "SELECT current_setting('threads') = 1 AS n", False),
        ("ATTACH ':memory:' AS other",
         "SELECT count(*)::int AS n FROM duckdb_databases() WHERE database_name = 'other'", 0),
        ("CREATE TEMP TABLE mine (a int)",
         "SELECT count(*)::int AS n FROM duckdb_tables() WHERE table_name = 'mine'", 0),
        ("SET VARIABLE mine = 1", "SELECT coalesce(getvariable('mine'), 0)::int AS n", 0),
    ],
)  # fmt: skip
async def test_t5_nothing_of_a_call_is_left_to_the_next(
    tool: DuckdbTool, leaves: str, looks: str, found: Any
) -> None:
    await row(tool, "SELECT 1")
    await row(tool, leaves)
    assert (await row(tool, looks))["rows"] == [{"n": found}]


async def test_a_failed_row_takes_nobody_along(tool: DuckdbTool) -> None:
    await run(tool, "CREATE TABLE t (n int PRIMARY KEY)", database="a.duckdb")
    rows = [row(tool, f"INSERT INTO t VALUES ({n % 8})") for n in range(16)]
    outcomes = await asyncio.gather(*rows, return_exceptions=True)
    assert sum(isinstance(outcome, Exception) for outcome in outcomes) == 8
    assert (await row(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 8}]


async def test_databases_that_attach_one_file_take_turns(tool: DuckdbTool, tmp_path: Path) -> None:
    await run(tool, "CREATE TABLE t (n int)", database="a.duckdb")
    attached = f"ATTACH '{tmp_path}/a.duckdb' AS shared; INSERT INTO shared.t VALUES (1)"
    calls = [run(tool, attached, database=":memory:") for _ in range(4)]
    calls += [run(tool, attached, execution_id=ExecutionId(str(at))) for at in range(4)]
    calls += [row(tool, "INSERT INTO t VALUES (1)") for _ in range(4)]
    async with asyncio.timeout(60):
        await asyncio.gather(*calls)
    assert (await row(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 12}]


async def test_a_file_that_stays_attached_elsewhere_is_told_in_the_end(
    tool: DuckdbTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_session, "LOCK_TRIES_MAX", 2)
    attached = f"ATTACH '{tmp_path}/a.duckdb' AS again"
    failed = await failure(tool, attached, database="a.duckdb")
    assert (failed.failure.kind, failed.failure.retryable) == ("db_connection", True)
    assert "try again when" in failed.failure.message


async def test_claims_and_rows_share_a_file(tool: DuckdbTool, tmp_path: Path) -> None:
    await run(
        tool,
        "CREATE TABLE t (n int); CREATE TABLE work (id int, status text);"
        " INSERT INTO work SELECT range, 'pending' FROM range(20)",
        database="a.duckdb",
    )
    cursor = DuckdbCursor(services(tmp_path))
    sql = (
        "UPDATE work SET status = 'claimed' WHERE id IN"
        " (SELECT id FROM work WHERE status = 'pending' ORDER BY id LIMIT 5) RETURNING id"
    )

    async def claim(number: int) -> list[int]:
        asked = call("duckdb", {"database": "a.duckdb", "query": sql})
        request = ClaimRequest(call=asked, name=str(number), idle_seconds_max=10)
        async with cursor.claim(request) as claim:
            await row(tool, f"INSERT INTO t VALUES ({number})")
            await claim.commit()
            return [each["id"] for each in claim.rows]

    async with asyncio.timeout(60):
        found = await asyncio.gather(*(claim(number) for number in range(4)))
    assert sorted(each for rows in found for each in rows) == list(range(20))
    await cursor.close()


async def test_two_processes_work_on_one_file(tool: DuckdbTool, tmp_path: Path) -> None:
    await run(tool, "CREATE TABLE t (n int)", database="a.duckdb")
    command = [sys.executable, "-c", ROWS_IN_A_PROCESS, str(tmp_path)]
    others = [subprocess.Popen(command) for _ in range(2)]  # noqa: ASYNC220 - only started here
    codes = [await asyncio.to_thread(other.wait) for other in others]
    assert codes == [0, 0]
    assert (await row(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 40}]
