"""Where statements end, in the texts that break careless splitters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.ports.tool import ToolFailed
from noetl.tools.sql_effects import only_reads
from noetl.tools.sql_parameters import bound_statements, has_sql_effect
from noetl.tools.sql_statements import (
    DUCKDB,
    POSTGRES,
    SPARK,
    SQLITE,
    Dialect,
    controls_transaction,
    split,
    tokens,
)


def texts(sql: str, dialect: Dialect = POSTGRES) -> list[str]:
    return [statement.text for statement in split(sql, dialect)]


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("", 0),
        (" ;; -- nothing\n ; /* ; */ ", 0),
        ("SELECT 1", 1),
        ("SELECT 1; SELECT 2;", 2),
        ("SELECT ';'; SELECT ''';'''", 2),
        ("SELECT 'it''s; fine'; SELECT \"a;\"\"b\"", 2),
        (r"SELECT E'it\'s; fine\\'; SELECT 2", 2),
        (r"SELECT 'standard\'; SELECT 2", 2),
        (r"SELECT type'\'; SELECT 2", 2),  # the e belongs to a word
        ("-- don't; split\nSELECT 1; -- it's over", 1),
        ("/* a; /* nested; */ 'b */ SELECT 1; SELECT 2", 2),
        ("SELECT 1 /* open; SELECT 2", 1),
        ("SELECT 'open; SELECT 2", 1),
        ("DO $$ BEGIN PERFORM 1; RAISE NOTICE 'x;'; END $$; SELECT 2", 2),
        ("DO $body$ BEGIN x := $$;$$; END $body$; SELECT 2", 2),
        ("SELECT $ä$ ; $$ ; $ä$; SELECT 2", 2),
        ("SELECT a$b$c; SELECT d$b$e", 2),  # dollars inside of names quote nothing
        ("SELECT $1; SELECT $2", 2),
        ("SELECT $$open; SELECT 2", 1),
        ("CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b); SELECT 2", 2),
        ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END; SELECT 3", 2),
        (
            "CREATE OR REPLACE PROCEDURE p() LANGUAGE sql BEGIN ATOMIC"
            " SELECT CASE WHEN true THEN 1 END; INSERT INTO t VALUES (1); END; SELECT 3",
            2,
        ),
        ("BEGIN; INSERT INTO t VALUES (1); END; SELECT 1", 4),
        ("SELECT U&'\\0041;', B'1', X'1F', N'x;'; SELECT 2", 2),
    ],
)
def test_a_text_is_split_where_its_statements_end(sql: str, count: int) -> None:
    assert len(texts(sql)) == count


def test_comments_stay_with_the_statement_that_follows() -> None:
    assert texts("SELECT 1; -- two;\nSELECT 2;\n") == ["SELECT 1", "-- two;\nSELECT 2"]


def test_a_trigger_of_sqlite_is_one_statement() -> None:
    sql = """CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN
        UPDATE b SET n = CASE WHEN n THEN 1 ELSE 2 END; DELETE FROM [c;d]; END;
        SELECT `x;y`, "$$"; SELECT '$$'"""
    assert len(texts(sql, SQLITE)) == 3


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        (r"SELECT 'O\'Brien; x'; SELECT 2", 2),
        (r'SELECT "say \"a;b\""; SELECT 2', 2),
        ("SELECT 'it''s; x', \"a\"\";b\"; SELECT 2", 2),
        (r"SELECT '\\'; SELECT 2", 2),
        ("SELECT r'\\'; SELECT R\"\\\"; SELECT 3", 3),
        ("SELECT `a;b``;c` FROM t; SELECT 2", 2),
        ("SELECT 1 /* a; /* b; */ c; */; SELECT 2", 2),
        ("SELECT 1 -- a;\\\n b; \n; SELECT 2", 2),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE PYTHON AS $$ a; b $$; SELECT 2", 2),
        (r"SELECT 'open\'; SELECT 2", 1),
    ],
)
def test_spark_quotes_by_backslashes_and_backticks(sql: str, count: int) -> None:
    assert len(texts(sql, SPARK)) == count


@given(st.text(alphabet="abE'\"$;()-/*\\:?%s1 \n[]`.", max_size=60))
def test_every_character_belongs_to_exactly_one_token(sql: str) -> None:
    for dialect in (POSTGRES, DUCKDB, SQLITE, SPARK):
        found = list(tokens(sql, dialect))
        assert "".join(sql[token.start : token.end] for token in found) == sql
        assert all(token.end > token.start for token in found)
        split(sql, dialect)


@pytest.mark.parametrize(
    ("sql", "controls"),
    [
        ("BEGIN", True),
        ("begin transaction isolation level serializable", True),
        ("START TRANSACTION", True),
        ("COMMIT", True),
        ("/* x */ end", True),
        ("ROLLBACK", True),
        ("ROLLBACK TO SAVEPOINT a", False),
        ("SAVEPOINT a", False),
        ("PREPARE p AS SELECT 1", False),
        ("SELECT 'COMMIT'", False),
        ("(1)", False),
    ],
)
def test_transactions_are_seen_in_the_text(sql: str, controls: bool) -> None:
    [statement] = split(sql, POSTGRES)
    assert controls_transaction(statement) is controls


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT * FROM t WHERE t.a IN (1) AND (b)", True),
        ("select count(*), Coalesce(max(x), 0) from t", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone", False),
        ("SELECT * FROM t FOR UPDATE SKIP LOCKED", False),
        ("SELECT * FROM t FOR NO KEY UPDATE", False),
        ("SELECT * INTO copy FROM t", False),
        ("SELECT nextval('s')", False),
        ("SELECT public.count(1)", False),
        ('SELECT "do it"(1)', False),
        ("SELECT 'DELETE', \"update\"", True),
        ("SHOW work_mem", True),
        ("EXPLAIN SELECT 1", True),
        ("EXPLAIN ANALYZE DELETE FROM t", False),
        ("VALUES (1), (2)", True),
        ("TRUNCATE t", False),
        ("DO $$ BEGIN END $$", False),
        ("VACUUM", False),
    ],
)
def test_a_statement_only_reads_when_nothing_in_it_could_write(sql: str, reads: bool) -> None:
    [statement] = split(sql, POSTGRES)
    assert only_reads(statement) is reads


@pytest.mark.parametrize(
    ("parameters", "effect"),
    [
        ({"query": "SELECT 1; SELECT 2"}, False),
        ({"commands": ["SELECT 1", "DELETE FROM t"]}, True),
        ({"query_b64": "U0VMRUNUIDE="}, False),
        ({"query_b64": "not base64"}, True),
        ({"script": {"uri": "/x.sql"}}, True),
    ],
)
def test_a_call_has_an_effect_if_any_statement_may(
    parameters: dict[str, Any], effect: bool
) -> None:
    assert has_sql_effect(parameters, POSTGRES) is effect


@pytest.mark.parametrize(
    ("sql", "params", "bound"),
    [
        ("SELECT $2, $2", ["a", "b"], [("SELECT $1, $1", ("b",))]),
        ("SELECT $1; SELECT $2", [1, 2], [("SELECT $1", (1,)), ("SELECT $1", (2,))]),
        ("SELECT %s; SELECT %s", [1, 2], [("SELECT $1", (1,)), ("SELECT $1", (2,))]),
        ("SELECT :a::int, ':a', :b", {"a": 1}, [("SELECT $1::int, ':a', :b", (1,))]),
        ("SELECT x[1:a], y[b:a], %(a)s", {"a": 1}, [("SELECT x[1:a], y[b:a], $1", (1,))]),
        ("DO $$ :a $$ -- :a", {"a": 1}, [("DO $$ :a $$ -- :a", ())]),
        ("SELECT '%s', '$1' WHERE a % 2 = $1", [1], [("SELECT '%s', '$1' WHERE a % 2 = $1", (1,))]),
        ("SELECT :a", '{"a": [1]}', [("SELECT $1", ([1],))]),
        ("SELECT $1, :a, ?", None, [("SELECT $1, :a, ?", ())]),
    ],
)
async def test_placeholders_of_every_spelling_are_bound(
    sql: str, params: Any, bound: list[tuple[str, tuple[Any, ...]]]
) -> None:
    found = await bound_statements({"query": sql, "params": params}, POSTGRES)
    assert [(item.text, item.arguments) for item in found] == bound


async def test_sqlite_and_duckdb_have_placeholders_of_their_own() -> None:
    parameters = {"query": "SELECT ?, ?; SELECT ?", "params": [1, 2, 3]}
    found = await bound_statements(parameters, SQLITE)
    assert [(item.text, item.arguments) for item in found] == [
        ("SELECT ?, ?", (1, 2)),
        ("SELECT ?", (3,)),
    ]
    found = await bound_statements({"query": "SELECT $a, @a, :a", "params": {"a": 1}}, SQLITE)
    assert (found[0].text, found[0].arguments) == ("SELECT ?, ?, ?", (1, 1, 1))
    found = await bound_statements({"query": "SELECT $a, :b", "params": {"a": 1, "b": 2}}, DUCKDB)
    assert (found[0].text, found[0].arguments) == ("SELECT $1, $2", (1, 2))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"query": "SELECT $3", "params": [1]}, "asks for \\$3"),
        ({"query": "SELECT %(b)s", "params": {"a": 1}}, "asks for %\\(b\\)s"),
        ({"query": "SELECT 1", "params": "not json"}, "not JSON"),
        ({"query": "SELECT 1", "params": 5}, "neither a list nor a map"),
        ({"query": " -- nothing"}, "no SQL"),
        ({"query": ["SELECT 1", 5]}, "not text"),
        ({"query_b64": "%%%"}, "base64"),
        ({"script": {"uri": "s3://bucket/x.sql"}}, "inline"),
        ({"script": {"uri": "/no/such/file.sql"}}, "cannot be read"),
    ],
)
async def test_what_cannot_be_bound_is_the_authors_to_repair(
    parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=words) as raised:
        await bound_statements(parameters, POSTGRES)
    assert not raised.value.failure.retryable


async def test_scripts_come_from_the_task_or_from_a_file(tmp_path: Any) -> None:
    (tmp_path / "x.sql").write_text("SELECT 'ä'; SELECT 2")
    inline = {"script": {"source": {"type": "inline", "code": "SELECT 1"}}}
    assert len(await bound_statements(inline, POSTGRES)) == 1
    for uri in (str(tmp_path / "x.sql"), f"file://{tmp_path}/x.sql"):
        found = await bound_statements({"script": {"uri": uri}}, POSTGRES)
        assert found[0].text == "SELECT 'ä'"
