"""Rows arrive whole and in their columns' types, or nothing arrives."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools.duckdb import DuckdbTool
from noetl.tools.transfer import TransferTool
from noetl.tools.transfer_plan import quoted_name
from tests.tools.tool_calls import KEY, call, services
from tests.tools.transfer_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.transfer_fixtures import Received, Run, taken


async def test_sqlite_to_duckdb_and_back_keeps_every_value(
    run_transfer: Run, database: Path, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "lake.duckdb")) as lake:
        lake.execute("CREATE TABLE numbers (id INTEGER, word VARCHAR, half DOUBLE, raw BLOB)")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE copied AS SELECT * FROM numbers WHERE false")
    here = {"type": "sqlite", "database": str(database)}
    there = {"type": "duckdb", "database": "lake.duckdb", "table": "numbers"}

    value = await run_transfer({**here, "table": "numbers"}, there, chunk_size=10)
    await run_transfer(there, {**here, "table": "copied"})

    assert value == {
        "status": "success",
        "direction": "sqlite_to_duckdb",
        "source_type": "sqlite",
        "target_type": "duckdb",
        "mode": "append",
        "rows_transferred": 25,
        "chunks_processed": 3,
        "target_table": "numbers",
        "columns": ["id", "word", "half", "raw"],
    }
    with closing(sqlite3.connect(database)) as connection:
        copied = connection.execute("SELECT * FROM copied ORDER BY id").fetchall()
        assert copied == connection.execute("SELECT * FROM numbers ORDER BY id").fetchall()


async def test_the_tables_of_an_execution_are_where_the_duckdb_tool_made_them(
    run_transfer: Run, database: Path, tmp_path: Path
) -> None:
    tables = DuckdbTool(services(tmp_path))
    await tables.run(call("duckdb", {"query": "CREATE TABLE t (id INTEGER PRIMARY KEY, w TEXT)"}))
    mapping = {"id": "id", "w": "word"}
    here = {"type": "sqlite", "database": str(database), "table": "numbers"}

    await run_transfer(here, {"type": "duckdb", "table": "t"}, mapping=mapping)
    await run_transfer(here, {"type": "duckdb", "table": "t"}, mapping=mapping, mode="replace")
    counted = await tables.run(call("duckdb", {"query": "SELECT count(*) AS n FROM t"}))
    await tables.close()

    assert counted.value["rows"] == [{"n": 25}]
    with pytest.raises(ToolFailed, match="onstraint") as raised:
        await run_transfer(here, {"type": "duckdb", "table": "t"}, mapping=mapping)
    assert raised.value.failure.kind == "db_constraint"


async def test_append_adds_replace_empties_and_upsert_updates(
    run_transfer: Run, database: Path
) -> None:
    source = {"type": "sqlite", "database": str(database)}
    target = {**source, "table": "taken"}

    await run_transfer({**source, "query": "SELECT 2 AS id, 'two' AS word;"}, target)
    assert taken(database) == [(1, "before"), (2, "two"), (900, "stays")]

    three = "SELECT 1 AS id, 'x' AS word UNION ALL SELECT 1, 'one' UNION ALL SELECT 3, 'three'"
    value = await run_transfer({**source, "query": three}, target, mode="upsert", key="id")
    assert taken(database) == [(1, "one"), (2, "two"), (3, "three"), (900, "stays")]
    assert value["rows_transferred"] == 3

    await run_transfer({**source, "query": "SELECT 7 AS id, 'new' AS word"}, target, mode="replace")
    assert taken(database) == [(7, "new")]


@pytest.mark.parametrize("mode", ["append", "replace"])
async def test_a_transfer_that_fails_half_way_leaves_nothing_behind(
    run_transfer: Run, database: Path, mode: str
) -> None:
    source = {"type": "sqlite", "database": str(database)}
    broken = "SELECT id + 10 AS id, nullif(word, 'word 24') AS word FROM numbers ORDER BY id"
    before = taken(database)

    with pytest.raises(ToolFailed, match="NOT NULL") as raised:
        await run_transfer(
            {**source, "query": broken}, {**source, "table": "taken"}, chunk_size=5, mode=mode
        )

    assert raised.value.failure.kind == "db_constraint"
    assert taken(database) == before


async def test_a_source_cannot_write(run_transfer: Run, database: Path) -> None:
    source = {"type": "sqlite", "database": str(database), "query": "DELETE FROM numbers"}

    with pytest.raises(ToolFailed, match="readonly"):
        await run_transfer(source, {"type": "sqlite", "database": str(database), "table": "taken"})


async def test_an_answer_over_http_is_mapped_to_columns(
    run_transfer: Run, database: Path, endpoint: Received
) -> None:
    source = {"type": "http", "url": f"{endpoint.url}/paged", "data_path": "page.items"}
    mapping = {"id": "id", "word": "author.name"}

    value = await run_transfer(
        source,
        {"type": "sqlite", "database": str(database), "table": "taken"},
        mapping=mapping,
        mode="replace",
        chunk_size=10,
    )

    assert value["columns"] == ["id", "word"]
    assert value["chunks_processed"] == 3
    assert taken(database) == [(number, "Ada") for number in range(1, 26)]


async def test_each_chunk_is_posted_under_a_name_of_its_own(
    run_transfer: Run, database: Path, endpoint: Received
) -> None:
    source = {"type": "sqlite", "database": str(database), "query": "SELECT id, raw FROM numbers"}
    target = {"type": "http", "endpoint": f"{endpoint.url}/posts"}

    await run_transfer(source, target, chunk_size=10)
    await run_transfer(source, target, chunk_size=10)

    assert [len(body) for body in endpoint.bodies] == [10, 10, 5] * 2
    assert endpoint.bodies[0][1] == {"id": 1, "raw": "AP8="}
    assert endpoint.keys == [f"{KEY}/chunk-{number}" for number in (1, 2, 3)] * 2


async def test_an_answer_without_rows_is_told(
    run_transfer: Run, database: Path, endpoint: Received
) -> None:
    target = {"type": "sqlite", "database": str(database), "table": "taken"}
    source = {"type": "http", "url": f"{endpoint.url}/paged", "data_path": "page.none"}

    with pytest.raises(ToolFailed, match=r"no list of rows at data_path 'page.none'") as raised:
        await run_transfer(source, target)

    assert raised.value.failure.kind == "schema"


async def test_a_field_that_comes_late_is_not_lost_in_silence(
    run_transfer: Run, endpoint: Received
) -> None:
    source = {"type": "http", "url": f"{endpoint.url}/late"}
    target = {"type": "http", "url": f"{endpoint.url}/posts"}

    with pytest.raises(ToolFailed, match="row 26 has the field 'extra'") as raised:
        await run_transfer(source, target, chunk_size=25)

    assert raised.value.failure.kind == "schema"


async def test_rows_may_stay_in_one_file(run_transfer: Run, database: Path) -> None:
    side = {"type": "sqlite", "database": str(database)}

    await run_transfer(
        {**side, "query": "SELECT id, word FROM numbers"},
        {**side, "table": "taken"},
        mode="replace",
        chunk_size=10,
    )

    assert len(taken(database)) == 25


async def test_a_call_whose_time_is_over_leaves_the_target_as_it_was(
    transfer_tool: TransferTool, database: Path
) -> None:
    endless = (
        "WITH RECURSIVE n(id) AS (SELECT 10 UNION ALL SELECT id + 1 FROM n) SELECT max(id) FROM n"
    )
    side = {"type": "sqlite", "database": str(database)}
    given = {"source": {**side, "query": endless}, "target": {**side, "table": "taken"}}
    before = taken(database)

    with pytest.raises(ToolFailed) as raised:
        await transfer_tool.run(call("transfer", given, timeout_seconds=0.3))

    assert raised.value.failure.kind == "timeout"
    assert taken(database) == before
    with closing(sqlite3.connect(database, timeout=0)) as connection, connection:
        connection.execute("INSERT INTO taken VALUES (5000, 'nobody holds a lock')")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": None}, "needs `source`"),
        ({"target": {"table": "t"}}, "needs `target`"),
        ({"source": {"type": "kafka"}}, "cannot be 'kafka'; use postgres, sqlite, duckdb or http"),
        ({"source": {"type": "sqlite", "database": "none.db", "table": "t"}}, "no SQLite file"),
        ({"target": {"type": "sqlite", "database": "data.db"}}, "needs `table`"),
        ({"source": {"type": "sqlite", "database": "data.db"}}, "needs `query`, or `table`"),
        ({"mode": "merge"}, "no mode 'merge'; use append, replace or upsert"),
        ({"mode": "upsert"}, "an upsert needs `key`"),
        ({"chunk_size": "many"}, "chunk_size must be a number"),
        ({"chunk_size": 0}, "chunk_size must be a number"),
        ({"mapping": {"a": 1}}, "must be `column: field` lines"),
        ({"target": {"type": "http", "url": "http://h"}, "mode": "replace"}, "use append"),
        ({"target": {"type": "postgres", "auth": "gone", "table": "t"}}, "'gone', which the task"),
        ({"target": {"type": "sqlite", "database": "data.db", "table": 'a"b'}}, "no name of a"),
        ({"target": {"type": "sqlite", "database": "data.db", "table": "none"}}, "no such table"),
    ],
)
async def test_a_mistake_in_the_task_is_told(
    transfer_tool: TransferTool, database: Path, changes: dict[str, Any], words: str
) -> None:
    given = {
        "source": {"type": "sqlite", "database": "data.db", "table": "numbers"},
        "target": {"type": "sqlite", "database": "data.db", "table": "taken"},
    }

    with pytest.raises(ToolFailed, match=words):
        await transfer_tool.run(call("transfer", given | changes))


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("posts", '"posts"'),
        ("public.posts", '"public"."posts"'),
        ('public."Odd.Name"', '"public"."Odd.Name"'),
        ("a; DROP TABLE b", '"a; DROP TABLE b"'),
    ],
)
def test_a_table_is_a_name_and_no_sql(name: str, quoted: str) -> None:
    assert quoted_name(name) == quoted


def test_only_what_repeats_nothing_has_no_effect(transfer_tool: TransferTool) -> None:
    source, target = {"type": "http", "url": "u"}, {"type": "postgres", "table": "t"}

    def effect(**parameters: Any) -> bool:
        return transfer_tool.has_effect({"source": source, "target": target, **parameters})

    assert effect()
    assert effect(mode="append")
    assert not effect(mode="replace")
    assert not effect(mode="upsert", key="id")
    assert effect(mode="replace", source={**source, "method": "POST"})
    assert effect(mode="replace", target={"type": "http"})
