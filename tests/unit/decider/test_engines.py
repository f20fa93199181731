"""Whether a playbook will need Spark, known before it begins."""

import pytest

from noetl.decider.engines import will_want_spark
from noetl.decider.view import StageEngines
from noetl.dsl.check import check
from noetl.testing.story import Story

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: story, path: tests/story}\n"
JOB = "workflow: [{step: a, tool: {kind: spark, sql: SELECT 1}}]"
SHORT = "workflow: [{step: a, loop: {in: [1], iterator: x}, tool: {kind: noop}}]"
FANOUT = SHORT.replace("iterator: x", "iterator: x, spec: {mode: fanout}")
JOBS = FANOUT.replace("kind: noop", "kind: spark, sql: SELECT 1")
OWN_TABLES = FANOUT.replace("kind: noop", "kind: duckdb, query: SELECT 1")
NAMED_TABLES = OWN_TABLES.replace("query:", "database: all.db, query:")
CLAIMS = (
    "workflow: [{step: a, loop: {cursor: {kind: duckdb, claim: SELECT 1, DATABASE}, iterator: x,"
    " spec: {mode: cursor}}, tool: {kind: noop}}]"
)


@pytest.mark.parametrize(
    ("text", "engines", "wants"),
    [
        (JOB, "auto", True),
        (JOB, "local", True),  # where loops run says nothing of its own jobs
        (JOB, "none", False),
        (JOBS, "local", True),
        (SHORT, "auto", False),
        (FANOUT, "auto", True),
        (FANOUT, "local", False),
        (OWN_TABLES, "auto", False),  # slots would not see the tables of the execution
        (NAMED_TABLES, "auto", True),
        (CLAIMS.replace(", DATABASE", ""), "auto", False),
        (CLAIMS.replace("DATABASE", "database: all.db"), "auto", True),
    ],
)
def test_it_is_started_early_for_those_that_are_sure_to_need_it(
    text: str, engines: StageEngines, wants: bool
) -> None:
    checked = check(HEAD + text)
    assert checked.playbook is not None
    assert will_want_spark(checked.playbook, engines) is wants


def test_a_loop_that_asks_for_spark_with_tables_that_slots_do_not_see_is_told() -> None:
    asked = OWN_TABLES.replace("spec: {mode: fanout}", "spec: {mode: fanout, engine: spark}")
    told = Story(HEAD + asked)
    assert told.status == "FAILED"
    assert "give `database:` a file" in told.of("step.exit")[-1].error.message
