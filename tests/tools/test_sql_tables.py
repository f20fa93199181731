"""Large results of SQL as tables, and stored tables under SQL; on real databases."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.ports.tool import ToolFailed, ToolResult
from noetl.results import lazily
from noetl.results.stored_table import StoredTable
from noetl.tools import sql_tables
from noetl.tools.duckdb import DuckdbTool
from noetl.tools.postgres import PostgresTool
from tests.tools.postgres_database import Database
from tests.tools.stored_tables import stored_rows
from tests.tools.tool_calls import SCOPE, call, services

LARGE = "SELECT range AS id, 'text ' || range AS name, range / 4 AS part FROM range(200000)"


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[DuckdbTool]:
    tool = DuckdbTool(services(tmp_path))
    yield tool
    await tool.close()


async def run(tool: DuckdbTool, query: str, **parameters: Any) -> ToolResult:
    given = {"query": query, "database": ":memory:", **parameters}
    return await tool.run(call("duckdb", given))


def whole(result: ToolResult) -> Any:
    assert result.table is not None
    assert result.value is None
    with StoredTable(result.table.path) as table:
        content = table.whole()
    result.table.path.unlink()
    return content["value"]


async def test_a_large_select_is_a_table_with_all_that_a_small_one_says(tool: DuckdbTool) -> None:
    small = (await run(tool, f"CREATE TABLE t (a int); {LARGE} LIMIT 2")).value
    value = whole(await run(tool, f"CREATE TABLE t (a int); {LARGE}"))
    assert value.keys() == small.keys()
    assert (value["row_count"], len(value["rows"])) == (200_000, 200_000)
    assert value["rows"][:2] == small["rows"]
    assert value["columns"] == ["id", "name", "part"]
    assert value["command_1"]["row_count"] == 200_000
    assert value["command_0"] == small["command_0"]


async def test_times_numbers_and_nested_values_are_those_of_small_results(
    tool: DuckdbTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = """
        SELECT range AS id, TIMESTAMP '2024-01-02 03:04:05' + INTERVAL (range) SECOND AS at,
          TIMESTAMPTZ '2024-01-02 03:04:05+00' AS zoned, INTERVAL 90 MINUTE AS span,
          CAST(range AS DECIMAL(9, 2)) / 3 AS money, {'a': range} AS nested, [range] AS list,
          MAP {'k': range} AS map, '{"j": 1}'::JSON AS doc, range::HUGEINT * 10 ** 20 AS huge,
          CASE WHEN range = 2999 THEN 'nan'::DOUBLE ELSE range END AS real
        FROM range(3000)
    """
    small = (await run(tool, query)).value
    monkeypatch.setattr(sql_tables, "TABLE_BYTES_MIN", 1_000)
    assert whole(await run(tool, query)) == small
    floats = "SELECT CASE WHEN range = 99999 THEN 'inf'::DOUBLE ELSE 1 END AS f FROM range(100000)"
    rows = whole(await run(tool, floats))["rows"]
    assert (rows[0]["f"], rows[-1]["f"]) == (1.0, "Infinity")


async def test_of_two_columns_with_one_name_a_row_keeps_the_last(tool: DuckdbTool) -> None:
    value = whole(await run(tool, "SELECT range AS a, 'x' || range AS a FROM range(600000)"))
    assert (value["columns"], value["rows"][3]) == (["a", "a"], {"a": "x3"})


async def test_a_query_that_fails_half_way_leaves_no_file(tool: DuckdbTool, tmp_path: Path) -> None:
    query = "SELECT range AS a, CAST('1' || repeat('x', (range // 900000)::INT) AS INT) AS b"
    with pytest.raises(ToolFailed) as raised:
        await run(tool, f"{query} FROM range(1000000)")
    assert raised.value.failure.kind == "transform"
    with pytest.raises(ToolFailed, match="undone"):
        await run(tool, f"BEGIN; {LARGE}")
    assert os.listdir(tmp_path) == []


async def test_stored_tables_and_rows_are_queried_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazily, "LAZY_BYTES_MIN", 0)
    given = services(tmp_path)
    tool = DuckdbTool(given)
    orders = await stored_rows(given, SCOPE, [{"id": n, "who": n % 3} for n in range(1_000)])
    people = [{"id": 0, "name": "Ada"}, {"id": 1, "name": "Bob"}, {"id": 2, "name": None}]
    query = """
        SELECT name, count(*) AS orders FROM orders JOIN people ON who = people.id
        GROUP BY name ORDER BY orders DESC, name
    """
    try:
        for tables in (
            {"orders": orders, "people": people},
            {"orders": {"rows": orders, "status": "ok"}, "people": {"rows": people}},
        ):
            value = (await run(tool, query, tables=tables)).value
            assert [row["orders"] for row in value["rows"]] == [334, 333, 333]
        for bad, words in (("text", "give it a list"), ([], "no rows")):
            with pytest.raises(ToolFailed, match=words):
                await run(tool, query, tables={"orders": bad})
    finally:
        await tool.close()
    assert os.listdir(tmp_path) == []


async def test_variables_of_this_program_are_no_tables(tool: DuckdbTool) -> None:
    for name in ("described", "sink", "tables"):
        with pytest.raises(ToolFailed, match="does not exist"):
            await run(tool, f"FROM {name}")


@pytest.fixture
async def database(postgres_dsn: str, tmp_path: Path) -> AsyncIterator[Database]:
    tool = PostgresTool(services(tmp_path))
    yield Database(tool, postgres_dsn)
    await tool.close()


@pytest.mark.servers
async def test_a_large_select_of_postgres_is_read_in_pieces_into_a_table(
    database: Database,
) -> None:
    query = """
        SELECT id, 'text ' || id AS name, CASE WHEN id > 100000 THEN id END AS late,
          id / 4.0 AS money, now()::timestamp(0) AS at, ARRAY[id] AS list,
          jsonb_build_object('k', id) AS doc,
          CASE WHEN id = 120000 THEN 'NaN'::float8 ELSE id END AS real
        FROM generate_series(1, {count}) AS id ORDER BY id
    """
    small = await database.run(query.format(count=2))
    result = await database.result(f"CREATE TEMP TABLE t (a int); {query.format(count=120_000)}")
    value = whole(result)
    assert (value["row_count"], value["statement_count"]) == (120_000, 2)
    assert value["columns"] == small["columns"]
    drop = {"at"}
    for row, expected in zip(value["rows"], small["rows"], strict=False):
        assert row.keys() == expected.keys()
        assert {k: v for k, v in row.items() if k not in drop} == {
            k: v for k, v in expected.items() if k not in drop
        }
    assert (value["rows"][-1]["late"], value["rows"][-1]["real"]) == (120_000, "NaN")


@pytest.mark.servers
async def test_postgres_leaves_no_file_when_a_large_select_fails(
    database: Database, tmp_path: Path
) -> None:
    with pytest.raises(ToolFailed):
        await database.run(
            "SELECT 1000 / (150000 - id) AS x, repeat('x', 50) AS t"
            " FROM generate_series(1, 200000) AS id"
        )
    assert os.listdir(tmp_path) == []
