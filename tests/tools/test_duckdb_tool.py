"""The duckdb tool on real files: shared tables, types, other processes, no downloads."""

from pathlib import Path
from typing import Any

import pytest

from noetl.kernel.ids import ExecutionId
from noetl.tools.duckdb import DuckdbTool
from tests.tools.duckdb_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.duckdb_fixtures import failure, run
from tests.tools.tool_calls import services


async def test_steps_of_one_execution_share_their_tables(tool: DuckdbTool) -> None:
    value = await run(
        tool, "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)"
    )
    assert (value["affected_rows"], value["message"]) == (2, "INSERT")
    value = await run(tool, "SELECT * FROM t ORDER BY a DESC")
    told = {
        "status": "ok",
        "columns": ["a", "b"],
        "rows": [{"a": 2, "b": None}, {"a": 1, "b": "x"}],
        "row_count": 2,
    }
    assert value == told | {"statement_count": 1, "command_0": told}
    other = await failure(tool, "SELECT * FROM t", execution_id=ExecutionId("other"))
    assert other.failure.kind == "schema"


async def test_memory_is_fresh_each_time_and_files_are_shared(
    tool: DuckdbTool, tmp_path: Path
) -> None:
    for database in (":memory:", "named.duckdb", str(tmp_path / "whole.duckdb")):
        value = await run(tool, "CREATE TABLE t AS SELECT 1 AS a; FROM t", database=database)
        assert value["rows"] == [{"a": 1}]
    await failure(tool, "FROM t", database=":memory:")
    assert (await run(tool, "FROM t", database="named.duckdb"))["row_count"] == 1
    assert (tmp_path / "named.duckdb").exists()


async def test_the_rows_of_the_last_select_are_the_result(tool: DuckdbTool) -> None:
    value = await run(tool, ["CREATE TABLE t (a int)", "SELECT 5 AS a", "DROP TABLE t"])
    assert value["rows"] == [{"a": 5}]
    assert value["command_2"]["message"] == "DROP"
    assert value["statement_count"] == 3


async def test_all_statements_of_a_call_happen_or_none(tool: DuckdbTool) -> None:
    await run(tool, "CREATE TABLE t (a int PRIMARY KEY)")
    failed = await failure(tool, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    assert (failed.failure.kind, failed.failure.detail) == ("db_constraint", {"statement": 1})
    assert (await run(tool, "SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]
    await run(tool, "BEGIN; INSERT INTO t VALUES (1); COMMIT; BEGIN; DELETE FROM t; ROLLBACK")
    failed = await failure(tool, "BEGIN; INSERT INTO t VALUES (2)")
    assert "COMMIT" in failed.failure.message
    assert (await run(tool, "FROM t"))["rows"] == [{"a": 1}]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1.50::decimal(10,2)", 1.5),
        ("100.00::decimal(10,2)", 100),
        ("9007199254740993::bigint", 9007199254740993),
        ("12345678901234567890123::hugeint", "12345678901234567890123"),
        ("'nan'::float", "NaN"),
        ("timestamptz '2024-01-01 02:00:00.5+02'", "2024-01-01T00:00:00.5+00:00"),
        ("[timestamptz '2024-01-01 00:00:00+00']", ["2024-01-01 00:00:00+00"]),
        ("timestamp '2024-01-01 02:00:00'", "2024-01-01T02:00:00"),
        ("'infinity'::timestamp", "infinity"),
        ("date '2024-01-01'", "2024-01-01"),
        ("interval '1 month 3 days 04:05:06'", "1 month 3 days 04:05:06"),
        ("'\\xAA'::blob", "qg=="),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        ("""'{"a": [1]}'::json""", {"a": [1]}),
        ("""['{"a": 1}'::json]""", [{"a": 1}]),
        ("{'x': 1, 'y': [1.5]}", {"x": 1, "y": [1.5]}),
        ("map {1: 'a'}", {"1": "a"}),
        ("[1, NULL]", [1, None]),
        ("NULL::json", None),
        ("NULL::timestamptz", None),
    ],
)
async def test_values_are_plain(tool: DuckdbTool, expression: str, expected: Any) -> None:
    query = f"SET TimeZone = 'UTC'; SELECT {expression} AS v -- the end"
    [row] = (await run(tool, query, database=":memory:"))["rows"]
    assert (row["v"], type(row["v"])) == (expected, type(expected))


async def test_columns_keep_their_names_and_order(tool: DuckdbTool) -> None:
    query = 'SELECT now() AS "a b", 2 AS n, now() AS c UNION ALL SELECT now(), 1, NULL ORDER BY n'
    value = await run(tool, query, database=":memory:")
    assert value["columns"] == ["a b", "n", "c"]
    assert [row["n"] for row in value["rows"]] == [1, 2]


@pytest.mark.parametrize(
    "query",
    ["SHOW TABLES", "DESCRIBE SELECT 1", "SUMMARIZE SELECT 1 AS a", "EXPLAIN SELECT 1",
     "PRAGMA database_list", "VALUES (1)", "WITH x AS (SELECT 1) FROM x",
     "PIVOT (SELECT 1 AS a, 2 AS b) ON a USING sum(b)", "SELECT 1 LIMIT 1 -- $1 and ?"],
)  # fmt: skip
async def test_every_way_to_ask_gives_rows(tool: DuckdbTool, query: str) -> None:
    assert "rows" in await run(tool, query)


async def test_changes_are_counted_and_returning_gives_rows(tool: DuckdbTool) -> None:
    assert (await run(tool, "CREATE TABLE t AS SELECT 1 AS a"))["affected_rows"] == 1
    assert (await run(tool, "INSERT INTO t VALUES (2) RETURNING a"))["rows"] == [{"a": 2}]
    assert (await run(tool, "UPDATE t SET a = 5"))["affected_rows"] == 2
    assert (await run(tool, "SET threads = 1"))["affected_rows"] == 0
    assert (await run(tool, "DELETE FROM t"))["row_count"] == 2


async def test_times_with_a_zone_can_be_returned(tool: DuckdbTool) -> None:
    moment = "'2026-01-02 03:04:05+00'::timestamptz"
    await run(tool, "SET TimeZone = 'UTC'; CREATE TABLE t (a timestamptz)")
    given = await run(tool, f"SET TimeZone = 'UTC'; INSERT INTO t VALUES ({moment}) RETURNING a")
    assert given["rows"] == [{"a": "2026-01-02T03:04:05+00:00"}]


async def test_values_are_bound_in_every_spelling(tool: DuckdbTool) -> None:
    value = await run(tool, "SELECT ?::text AS a; SELECT ?::int AS b", params=["'; --", 2])
    assert (value["command_0"]["rows"], value["rows"]) == ([{"a": "'; --"}], [{"b": 2}])
    value = await run(tool, "SELECT $n::int + :n::int AS v", params={"n": 2})
    assert value["rows"] == [{"v": 4}]


async def test_files_are_read_and_written(tool: DuckdbTool, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    value = await run(tool, f"COPY (SELECT 1 AS a UNION ALL SELECT 2) TO '{path}'")
    assert value["affected_rows"] == 2
    assert (await run(tool, f"SELECT sum(a) AS s FROM '{path}'"))["rows"] == [{"s": 3}]


async def test_what_is_built_in_may_be_installed_again(tool: DuckdbTool) -> None:
    value = await run(tool, "INSTALL json; LOAD json; SELECT to_json([1]) AS v")
    assert value["rows"] == [{"v": [1]}]


def test_reading_has_no_effect(tmp_path: Path) -> None:
    tool = DuckdbTool(services(tmp_path))
    assert not tool.has_effect({"query": "SELECT * FROM read_csv('x.csv')"})
    assert not tool.has_effect({"query": "FROM t"})
    assert tool.has_effect({"query": "COPY t TO 'x.csv'"})


async def test_a_result_without_rows_is_a_table_with_its_columns(tool: DuckdbTool) -> None:
    nothing = await run(tool, "SELECT 1 AS id, 'x' AS name WHERE false")
    query = "SELECT count(id) AS n, sum(id) AS total, max(upper(name)) AS name FROM t WHERE id > 1"

    value = await run(tool, query, tables={"t": nothing})
    own = await run(tool, "SELECT id FROM t", tables={"t": {"columns": ["id"], "rows": []}})
    lost = await failure(tool, query, tables={"t": nothing["rows"]})

    assert value["rows"] == [{"n": 0, "total": None, "name": None}]
    assert (own["columns"], own["rows"]) == (["id"], [])
    assert "give the whole result" in lost.failure.message
