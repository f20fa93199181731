"""Rows that write one SQLite file at once: few commits, and each row as if it were alone."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.kernel.ids import StageId
from noetl.ports.tool import ToolFailed
from noetl.tools import sqlite as module
from noetl.tools.sqlite import SqliteTool
from tests.tools.tool_calls import call, services

ROWS = 40
ENDLESS = (
    "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n)"
    " SELECT i FROM n"
)


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[SqliteTool]:
    tool = SqliteTool(services(tmp_path))
    made = {"database": "a.db", "query": "CREATE TABLE t (a PRIMARY KEY)"}
    await tool.run(call("sqlite", made))
    yield tool
    await tool.close()


async def row(tool: SqliteTool, query: str, timeout_seconds: float | None = None) -> Any:
    asked = call(
        "sqlite",
        {"database": "a.db", "query": query},
        stage_id=StageId("1"),
        timeout_seconds=timeout_seconds,
    )
    return (await tool.run(asked)).value


async def found(tool: SqliteTool) -> list[int]:
    return [each["a"] for each in (await row(tool, "SELECT a FROM t ORDER BY a"))["rows"]]


def commits(folder: Path) -> int:
    """SQLite counts them in the head of the file."""
    return int.from_bytes((folder / "a.db").read_bytes()[24:28])


async def test_rows_at_once_are_committed_together(tool: SqliteTool, tmp_path: Path) -> None:
    before = commits(tmp_path)
    values = await asyncio.gather(*(row(tool, f"INSERT INTO t VALUES ({n})") for n in range(ROWS)))
    assert [value["affected_rows"] for value in values] == [1] * ROWS
    assert await found(tool) == list(range(ROWS))
    assert commits(tmp_path) - before < ROWS / 4


@pytest.mark.parametrize("way", ["INSERT INTO", "INSERT OR ROLLBACK INTO", "INSERT OR FAIL INTO"])
async def test_a_row_that_fails_takes_nobody_along(tool: SqliteTool, way: str) -> None:
    both = "INSERT INTO t VALUES ({0}); {1} t VALUES ({2})"
    calls = [
        row(tool, both.format(n, way, n + 100 if n % 8 else n)) for n in range(ROWS)
    ]  # every eighth meets itself
    answers = await asyncio.gather(*calls, return_exceptions=True)
    failed = {n: each for n, each in enumerate(answers) if isinstance(each, ToolFailed)}
    assert list(failed) == list(range(0, ROWS, 8))
    assert {each.failure.kind for each in failed.values()} == {"db_constraint"}
    kept = [n for n in range(ROWS) if n % 8]
    assert await found(tool) == sorted([*kept, *(n + 100 for n in kept)])


async def test_t3_a_row_that_is_stopped_takes_nobody_along(tool: SqliteTool) -> None:
    async with asyncio.timeout(60):
        first = asyncio.ensure_future(row(tool, "INSERT INTO t VALUES (-1)"))
        long = asyncio.ensure_future(row(tool, ENDLESS))
        others = [asyncio.ensure_future(row(tool, f"INSERT INTO t VALUES ({n})")) for n in range(9)]
        await asyncio.wait([first, *others], timeout=0.3)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        await asyncio.gather(first, *others)
    assert await found(tool) == [-1, *range(9)]


async def test_t3_a_row_that_waits_can_be_stopped_while_others_wait_on(
    tool: SqliteTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TRIES_MAX", 1_000_000)  # it would not give up by itself
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    patient = [asyncio.ensure_future(row(tool, f"INSERT INTO t VALUES ({n})")) for n in range(5)]
    with pytest.raises(ToolFailed) as raised:
        await row(tool, "INSERT INTO t VALUES (99)", timeout_seconds=0.2)
    assert raised.value.failure.kind == "db_timeout"
    other.execute("ROLLBACK")
    other.close()
    async with asyncio.timeout(60):
        await asyncio.gather(*patient)
    assert await found(tool) == list(range(5))


async def test_a_writer_that_never_ends_is_told_to_all(
    tool: SqliteTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TRIES_MAX", 2)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    calls = [row(tool, f"INSERT INTO t VALUES ({n})") for n in range(5)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    other.close()
    assert [answer.failure.kind for answer in answers if isinstance(answer, ToolFailed)] == [
        "db_deadlock"
    ] * 5


async def test_rows_and_steps_take_turns(tool: SqliteTool) -> None:
    step = {"database": "a.db", "query": "SELECT a FROM t; INSERT INTO t VALUES (500)"}
    rows = [row(tool, f"INSERT INTO t VALUES ({n})") for n in range(ROWS)]
    await asyncio.gather(*rows, tool.run(call("sqlite", step)))
    assert await found(tool) == [*range(ROWS), 500]
