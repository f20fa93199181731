"""The sqlite tool on real files: statements, transactions, writers that wait, calls that stop."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetl.domain.credential import OpenCredential
from noetl.kernel.canonical_json import check_plain, encode
from noetl.ports.tool import ToolFailed
from noetl.tools import sqlite as module
from noetl.tools.sqlite import SqliteTool
from tests.tools.tool_calls import call, services

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[SqliteTool]:
    tool = SqliteTool(services(tmp_path))
    yield tool
    await tool.close()


async def run(tool: SqliteTool, query: Any, **further: Any) -> Any:
    timeout = further.pop("timeout_seconds", None)
    credentials = further.pop("credentials", {})
    parameters = {"database": "a.db", "query": query, **further}
    result = await tool.run(
        call("sqlite", parameters, timeout_seconds=timeout, credentials=credentials)
    )
    check_plain(result.value)
    encode(result.value)
    return result.value


async def failure(tool: SqliteTool, query: Any, **further: Any) -> ToolFailed:
    with pytest.raises(ToolFailed) as raised:
        await run(tool, query, **further)
    return raised.value


async def test_statements_share_a_file_and_rows_have_names(
    tool: SqliteTool, tmp_path: Path
) -> None:
    value = await run(tool, "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2.5, NULL)")
    assert (value["affected_rows"], value["message"], value["statement_count"]) == (2, "INSERT", 2)
    value = await run(tool, "SELECT a, b FROM t", database=str(tmp_path / "a.db"))
    told = {
        "status": "ok",
        "columns": ["a", "b"],
        "rows": [{"a": 1, "b": "x"}, {"a": 2.5, "b": None}],
        "row_count": 2,
    }
    assert value == told | {"statement_count": 1, "command_0": told}
    assert (await run(tool, "SELECT x'00ff' AS v"))["rows"] == [{"v": "AP8="}]
    assert (await run(tool, "DELETE FROM t RETURNING a"))["row_count"] == 2


async def test_values_are_bound_in_every_spelling(tool: SqliteTool) -> None:
    value = await run(tool, "SELECT ? AS a, ? AS b", params=["'; --", {"x": 1}])
    assert value["rows"] == [{"a": "'; --", "b": '{"x":1}'}]
    value = await run(tool, "SELECT :a AS a, $a AS b, '@a' AS c", params={"a": 5})
    assert value["rows"] == [{"a": 5, "b": 5, "c": "@a"}]


async def test_all_statements_of_a_call_happen_or_none(tool: SqliteTool) -> None:
    await run(tool, "CREATE TABLE t (a PRIMARY KEY)")
    failed = await failure(tool, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    assert failed.failure.kind == "db_constraint"
    assert failed.failure.code == "SQLITE_CONSTRAINT_PRIMARYKEY"
    assert failed.failure.detail == {"statement": 1}
    assert (await run(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]


async def test_a_text_with_its_own_transactions_is_run_as_written(tool: SqliteTool) -> None:
    value = await run(tool, "CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1); COMMIT; VACUUM")
    assert value["message"] == "VACUUM"
    failed = await failure(tool, "BEGIN; INSERT INTO t VALUES (2)")
    assert "COMMIT" in failed.failure.message
    assert (await run(tool, "SELECT a FROM t"))["rows"] == [{"a": 1}]


async def test_a_trigger_is_one_statement(tool: SqliteTool) -> None:
    value = await run(
        tool,
        """CREATE TABLE a (n); CREATE TABLE b (n);
        CREATE TRIGGER copy AFTER INSERT ON a BEGIN INSERT INTO b VALUES (new.n);
          INSERT INTO b VALUES (CASE WHEN new.n > 0 THEN ';' ELSE NULL END); END;
        INSERT INTO a VALUES (1); SELECT n FROM b""",
    )
    assert [row["n"] for row in value["rows"]] == [1, ";"]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("SELEC 1", "schema"),
        ("SELECT * FROM nowhere", "schema"),
        ("INSERT INTO t VALUES ('x')", "transform"),
        ("INSERT INTO t VALUES (NULL, 1)", "schema"),
        ("SELECT CAST(x'ff' AS TEXT) AS v", "transform"),
    ],
)
async def test_t1_what_sqlite_refuses_has_a_kind(tool: SqliteTool, query: str, kind: str) -> None:
    await run(tool, "CREATE TABLE t (a INTEGER PRIMARY KEY)")
    failed = await failure(tool, query)
    assert failed.failure.kind == kind
    assert (await run(tool, "SELECT 1 AS a"))["rows"] == [{"a": 1}]


async def test_t1_numbers_that_sqlite_cannot_hold_are_a_failure(tool: SqliteTool) -> None:
    assert (await failure(tool, "SELECT ?", params=[2**70])).failure.kind == "transform"


async def test_t4_what_is_not_a_database_is_told(tool: SqliteTool, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, and long enough to be looked at" * 100)
    assert (await failure(tool, "SELECT * FROM t", database="text")).failure.kind == (
        "storage_access"
    )
    missing = await failure(tool, "SELECT 1", database="no/such/folder/a.db")
    assert missing.failure.kind == "storage_access"
    assert (await failure(tool, "SELECT 1", database=None)).failure.kind == "client_error"


async def test_t4_a_secret_is_scrubbed_from_what_sqlite_says(tool: SqliteTool) -> None:
    credentials = {"": OpenCredential(name="c", type="secret", data={"value": "hidden_word"})}
    failed = await failure(tool, "SELECT hidden_word", credentials=credentials)
    assert "hidden_word" not in failed.failure.message
    assert "***" in failed.failure.message


async def test_t3_a_cancelled_call_stops_its_thread(tool: SqliteTool, tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        running = asyncio.ensure_future(run(tool, f"CREATE TABLE t (a); {ENDLESS}"))
        while not (tmp_path / "a.db-journal").exists():  # inside of its transaction
            assert not (await asyncio.wait([running], timeout=0.01))[0]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        failed = await failure(tool, "SELECT * FROM t")  # the file is free, and nothing is there
    assert failed.failure.kind == "schema"


async def test_t3_a_call_that_takes_too_long_is_stopped(tool: SqliteTool) -> None:
    failed = await failure(tool, ENDLESS, timeout_seconds=0.2)
    assert (failed.failure.kind, failed.failure.retryable) == ("db_timeout", True)


async def test_t3_a_call_that_waits_for_a_writer_can_be_stopped(
    tool: SqliteTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TRIES_MAX", 1_000_000)  # it would not give up by itself
    with sqlite3.connect(tmp_path / "a.db", isolation_level=None) as other:
        other.execute("CREATE TABLE t (a)")
        other.execute("BEGIN IMMEDIATE")
        failed = await failure(tool, "INSERT INTO t VALUES (1)", timeout_seconds=0.2)
        other.execute("ROLLBACK")
    other.close()
    assert failed.failure.kind == "db_timeout"


async def test_a_writer_that_never_ends_is_told_after_a_while(
    tool: SqliteTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TRIES_MAX", 2)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("CREATE TABLE t (a)")
    other.execute("BEGIN IMMEDIATE")
    failed = await failure(tool, "INSERT INTO t VALUES (1)")
    other.close()
    assert (failed.failure.kind, failed.failure.retryable) == ("db_deadlock", True)


async def test_t5_writers_take_turns_and_lose_nothing(tool: SqliteTool) -> None:
    await run(tool, "CREATE TABLE t (n); INSERT INTO t VALUES (0)")
    step = "SELECT n FROM t; UPDATE t SET n = n + 1"  # readers that then want to write
    await asyncio.gather(*(run(tool, step) for _ in range(30)))
    assert (await run(tool, "SELECT n FROM t"))["rows"] == [{"n": 30}]


async def test_files_are_closed_after_each_call(tool: SqliteTool, tmp_path: Path) -> None:
    await run(tool, "CREATE TABLE t (a)")
    assert str(tmp_path / "a.db") not in [file.path for file in psutil.Process().open_files()]


def test_reading_has_no_effect(tmp_path: Path) -> None:
    tool = SqliteTool(services(tmp_path))
    assert not tool.has_effect({"query": "SELECT 1"})
    assert tool.has_effect({"query": "PRAGMA user_version = 1"})
