"""What the spark tool orders, and how it says what went wrong. Jobs are run in tests/spark."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.domain.events.values import ResultReference
from noetl.kernel.errors import (
    NoETLError,
    RequestInvalid,
    SparkDriverLost,
    SparkJobFailed,
    SparkMissing,
)
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.spark_jobs import SparkAnswer, SparkInput, SparkOrder, SparkWrite
from noetl.ports.tool import ToolFailed
from noetl.results import lazily
from noetl.tools.registry import Tools
from noetl.tools.spark import SparkTool
from tests.tools.calls import call, services
from tests.tools.stored_tables import stored_rows

OURS = "noetl://default/default/results/7/load@1"
CYCLE: dict[str, Any] = {"idempotency_key": "1/step/1/0/work/1", "result": OURS}


class Jobs:
    """Remembers what was ordered."""

    def __init__(self, answer: SparkAnswer | NoETLError | None = None) -> None:
        self.answer = answer or SparkAnswer(value=[])
        self.orders: list[SparkOrder] = []
        self.is_over = True

    async def run(self, order: SparkOrder) -> SparkAnswer:
        self.orders.append(order)
        if isinstance(self.answer, NoETLError):
            raise self.answer
        return self.answer


class EndlessJobs(Jobs):
    async def run(self, order: SparkOrder) -> SparkAnswer:
        self.is_over = False
        try:
            await asyncio.Event().wait()
        finally:
            self.is_over = True
        return await super().run(order)


def tool_on(folder: Path, jobs: Jobs | None) -> SparkTool:
    return SparkTool(msgspec.structs.replace(services(folder), spark=jobs))


async def ordered(folder: Path, **parameters: Any) -> SparkOrder:
    jobs = Jobs()
    await tool_on(folder, jobs).run(call("spark", parameters, **CYCLE))
    return jobs.orders[0]


async def test_names_stand_for_results_rows_files_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazily, "LAZY_BYTES_MIN", 1)
    large = await stored_rows(services(tmp_path), DEFAULT_SCOPE, [{"id": 1}, {"id": 2}])
    assert large.reference is not None
    order = await ordered(
        tmp_path,
        query="SELECT 1",
        datasets={
            "named": OURS,
            "large": large,
            "rows": [{"id": 1}],
            "loop": {"results": [{"id": 2}], "count": 1},
            "one": {"id": 3},
            "file": "in/orders.csv",
            "files": {"format": "json", "path": "s3a://bucket/x", "options": {"multiLine": True}},
            "options": {"path": OURS, "options": {"rows": "all"}},
            "table": {"table": "catalog.orders"},
        },
    )
    assert order.inputs == [
        SparkInput(name="named", result=OURS),
        SparkInput(
            name="large",
            result=large.reference.uri,
            options={"reference": msgspec.json.encode(large.reference).decode()},
        ),
        SparkInput(name="rows", rows=[{"id": 1}]),
        SparkInput(name="loop", rows=[{"id": 2}]),
        SparkInput(name="one", rows=[{"id": 3}]),
        SparkInput(name="file", format="csv", path=str(tmp_path / "in/orders.csv")),
        SparkInput(
            name="files", format="json", path="s3a://bucket/x", options={"multiLine": "true"}
        ),
        SparkInput(name="options", result=OURS, options={"rows": "all"}),
        SparkInput(name="table", table="catalog.orders"),
    ]
    assert (order.cycle, order.result) == (CYCLE["idempotency_key"], OURS)


async def test_rows_may_go_somewhere_instead(tmp_path: Path) -> None:
    order = await ordered(
        tmp_path, query="SELECT 1", write={"path": "out.csv", "mode": "append", "partition_by": "a"}
    )
    place = str(tmp_path / "out.csv")
    assert order.write == SparkWrite(format="csv", path=place, mode="append", partition_by=["a"])
    for wrong in ({"mode": "append"}, {"path": "x", "mode": "sometimes"}):
        with pytest.raises(ToolFailed, match="write"):
            await ordered(tmp_path, query="SELECT 1", write=wrong)


async def test_what_cannot_be_meant_is_said_before_anything_runs(tmp_path: Path) -> None:
    elsewhere = OURS.replace("default/default", "other/default")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"query": "SELECT 1", "code": "x"}, "either"),
        ({"query": "SELECT 1; SELECT 2"}, "2 statements"),
        ({"query": "SELECT 1", "datasets": {"x": elsewhere}}, "nothing is stored"),
        ({"query": "SELECT 1", "datasets": {"x": 5}}, "is a int"),
        ({"query": "SELECT 1", "datasets": ["x"]}, "not a map"),
        ({"query": "SELECT 1", "datasets": {"x": ["y" * 20_000_000]}}, "_ref"),
    ]
    for parameters, words in wrong:
        with pytest.raises(ToolFailed, match=words):
            await ordered(tmp_path, **parameters)


@pytest.mark.parametrize(
    "query", [r"SELECT 'O\'Brien; x'", r'SELECT "\"; x"', "SELECT `a;b`, `c``;d` FROM t"]
)
async def test_quotes_are_those_of_spark(tmp_path: Path, query: str) -> None:
    assert (await ordered(tmp_path, query=f"{query};")).query == query


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SparkJobFailed("t", "no such table", "AnalysisException"), "client_error"),
        (SparkJobFailed("t", "not today", "ValueError"), "unknown"),
        (SparkDriverLost("ended"), "server_error"),
        (SparkMissing(), "client_error"),
        (RequestInvalid("two of them"), "client_error"),
    ],
)
async def test_failures_have_kinds_that_rules_know(
    tmp_path: Path, error: NoETLError, kind: str
) -> None:
    with pytest.raises(ToolFailed) as caught:
        await tool_on(tmp_path, Jobs(error)).run(call("spark", {"query": "SELECT 1"}, **CYCLE))
    assert caught.value.failure.kind == kind


async def test_a_lost_job_that_must_not_run_twice_is_in_doubt(tmp_path: Path) -> None:
    jobs = Jobs(SparkDriverLost("ended"))
    asked = call("spark", {"code": "x"}, is_repeatable=False, **CYCLE)
    with pytest.raises(ToolFailed) as caught:
        await tool_on(tmp_path, jobs).run(asked)
    assert caught.value.failure.kind == "effect_in_doubt"
    assert not jobs.orders[0].is_repeatable


async def test_a_call_that_takes_too_long_leaves_no_job(tmp_path: Path) -> None:
    jobs = EndlessJobs()
    asked = call("spark", {"query": "SELECT 1"}, timeout_seconds=0.01, **CYCLE)
    with pytest.raises(ToolFailed) as caught:
        await tool_on(tmp_path, jobs).run(asked)
    assert caught.value.failure.kind == "timeout"
    assert jobs.is_over


async def test_a_stored_result_is_handed_on_by_its_reference(tmp_path: Path) -> None:
    reference = ResultReference(type="object_store", uri=OURS, row_count=5)
    tool = tool_on(tmp_path, Jobs(SparkAnswer(reference=reference)))
    result = await tool.run(call("spark", {"query": "SELECT 1"}, **CYCLE))
    assert result.stored == reference


async def test_it_runs_where_spark_is_driven_and_says_so_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="on the server"):
        await tool_on(tmp_path, None).run(call("spark", {"query": "SELECT 1"}))
    assert "spark" not in Tools(services(tmp_path)).kinds
    here = msgspec.structs.replace(services(tmp_path), spark=Jobs())
    assert "spark" in Tools(here).kinds


@pytest.mark.parametrize(
    ("parameters", "has_effect"),
    [
        ({"query": "SELECT explode(x) FROM t"}, False),
        ({"query": "WITH a AS (SELECT 1) SELECT * FROM a"}, False),
        ({"query": r"SELECT 'it\'s; INSERT' AS `delete; it`"}, False),
        ({"query": r"SELECT r'\', reflect('java.lang.System', 'exit', 1), '"}, True),
        ({"query": "SELECT `reflect`('java.lang.System', 'exit', 1)"}, True),
        ({"query": "SELECT system.builtin.reflect('java.lang.System', 'exit', 1)"}, True),
        ({"query": "INSERT INTO t SELECT 1"}, True),
        ({"query": "SELECT reflect('java.lang.System', 'exit', 1)"}, True),
        ({"query": "SELECT 1", "write": {"path": "x"}}, True),
        ({"code": "def main(spark): ..."}, True),
    ],
)
def test_only_plain_queries_have_no_effect(
    tmp_path: Path, parameters: dict[str, Any], has_effect: bool
) -> None:
    assert tool_on(tmp_path, Jobs()).has_effect(parameters) is has_effect
