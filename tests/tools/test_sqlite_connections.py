"""Connections that rows of a loop share: nothing of one call is left to the next."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetl.kernel.ids import StageId
from noetl.ports.tool import ToolFailed
from noetl.tools import sqlite_connections as module
from noetl.tools.sqlite import SqliteTool
from tests.tools.tool_calls import call, services


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[SqliteTool]:
    tool = SqliteTool(services(tmp_path))
    yield tool
    await tool.close()


async def row(tool: SqliteTool, query: str, **params: Any) -> Any:
    """A call of a row of a loop."""
    parameters = {"database": "a.db", "query": query, "params": params}
    return (await tool.run(call("sqlite", parameters, stage_id=StageId("1")))).value


async def step(tool: SqliteTool, query: str) -> Any:
    return (await tool.run(call("sqlite", {"database": "a.db", "query": query}))).value


def files(folder: Path) -> list[str]:
    return [Path(file.path).name for file in psutil.Process().open_files()
            if file.path.startswith(str(folder))]  # fmt: skip


async def test_rows_keep_the_file_open_for_a_moment(
    tool: SqliteTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
    await step(tool, "CREATE TABLE t (a)")
    assert files(tmp_path) == []
    for number in range(5):
        await row(tool, "INSERT INTO t VALUES (:a)", a=number)
    assert files(tmp_path) == ["a.db"]
    async with asyncio.timeout(30):
        while await asyncio.to_thread(files, tmp_path):
            pass
    assert (await row(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 5}]


async def test_a_step_after_a_loop_leaves_a_file_that_can_be_copied(
    tool: SqliteTool, tmp_path: Path
) -> None:
    await step(tool, "PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
    await asyncio.gather(*(row(tool, "INSERT INTO t VALUES (:a)", a=at) for at in range(20)))
    assert (tmp_path / "a.db-wal").exists()
    await step(tool, "INSERT INTO t VALUES (21)")
    assert not (tmp_path / "a.db-wal").exists()
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT count(*) FROM t").fetchone() == (21,)
    copy.close()


@pytest.mark.parametrize(
    ("leaves", "looks", "found"),
    [
        ("CREATE TEMP TABLE mine (a)", "SELECT count(*) AS n FROM sqlite_temp_schema", 0),
        ("CREATE TABLE \"temp\".mine (a)", "SELECT count(*) AS n FROM sqlite_temp_schema", 0),
        ("ATTACH ':memory:' AS other", "SELECT count(*) AS n FROM pragma_database_list", 1),
        ("PRAGMA foreign_keys = ON", "SELECT foreign_keys AS n FROM pragma_foreign_keys", 0),
        ("PRAGMA case_sensitive_like = ON", "SELECT 'A' LIKE 'a' AS n", 1),
        ("INSERT INTO t VALUES (1)", "SELECT changes() AS n", 0),
        ("INSERT INTO t VALUES (1)", "SELECT last_insert_rowid() AS n", 0),
        ("SAVEPOINT mine; INSERT INTO t VALUES (1)", "SELECT count(*) AS n FROM t", 1),
    ],
)  # fmt: skip
async def test_t5_nothing_of_a_call_is_left_to_the_next(
    tool: SqliteTool, leaves: str, looks: str, found: int
) -> None:
    await step(tool, "CREATE TABLE t (a)")
    await row(tool, "SELECT 1")
    await row(tool, leaves)
    assert (await row(tool, looks))["rows"] == [{"n": found}]


async def test_a_failed_call_leaves_no_transaction(tool: SqliteTool, tmp_path: Path) -> None:
    await step(tool, "CREATE TABLE t (a PRIMARY KEY)")
    for _ in range(3):
        with pytest.raises(ToolFailed, match="UNIQUE"):
            await row(tool, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    other = sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    other.close()
    assert (await row(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]


async def test_a_file_that_was_replaced_or_deleted_is_noticed(
    tool: SqliteTool, tmp_path: Path
) -> None:
    await step(tool, "CREATE TABLE t (a); INSERT INTO t VALUES ('old')")
    await row(tool, "SELECT a FROM t")
    fresh = sqlite3.connect(tmp_path / "fresh.db")
    fresh.executescript("CREATE TABLE t (a); INSERT INTO t VALUES ('new')")
    fresh.close()
    (tmp_path / "fresh.db").replace(tmp_path / "a.db")
    assert (await row(tool, "SELECT a FROM t"))["rows"] == [{"a": "new"}]
    (tmp_path / "a.db").unlink()
    with pytest.raises(ToolFailed, match="no such table"):
        await row(tool, "SELECT a FROM t")
    await row(tool, "SELECT 1")
    assert (tmp_path / "a.db").exists()


async def test_a_kept_statement_follows_its_table(tool: SqliteTool, tmp_path: Path) -> None:
    await step(tool, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert (await row(tool, "SELECT * FROM t"))["columns"] == ["a"]
    other = sqlite3.connect(tmp_path / "a.db")
    other.executescript("DROP TABLE t; CREATE TABLE t (b, c); INSERT INTO t VALUES (2, 3)")
    other.close()
    value = await row(tool, "SELECT * FROM t")
    assert (value["columns"], value["rows"]) == (["b", "c"], [{"b": 2, "c": 3}])


async def test_the_way_a_file_keeps_its_journal_can_be_changed_while_it_is_kept_open(
    tool: SqliteTool,
) -> None:
    await step(tool, "PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
    for mode in ("delete", "wal"):
        await asyncio.gather(*(row(tool, "INSERT INTO t VALUES (1)") for _ in range(10)))
        changed = await step(tool, f"PRAGMA journal_mode = {mode}")
        assert changed["rows"] == [{"journal_mode": mode}]


async def test_memory_is_fresh_each_time(tool: SqliteTool) -> None:
    parameters = {"database": ":memory:", "query": "SELECT count(*) AS n FROM sqlite_schema"}
    made = {"database": ":memory:", "query": "CREATE TABLE t (a)"}
    for given in (made, made, parameters):
        result = await tool.run(call("sqlite", given, stage_id=StageId("1")))
    assert result.value["rows"] == [{"n": 0}]
