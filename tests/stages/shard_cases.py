"""Shards of a fan-out are tried alone and come together; a reduce has them as one dataset."""

from collections import Counter
from typing import Any

from noetl.bootstrap.engine import Engine
from noetl.domain.events import FaninCompleted, ShardDone, ShardFailed
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from tests.stages.engine_case import EngineCase
from tests.stages.stage_scene import Target, events_of, said, serving, started

SHARDS = """
workload: {url: "", shards: 50}
workflow:
  - step: each
    loop:
      in: "{{ range(shards) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: fanout, max_in_flight: 4, fanout: {max_shard_retries: 1}}
    tool:
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.number }}"}}
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.number }}"},
         timeout: 120}
    next:
      arcs:
        - {step: done, when: "{{ fanin.status == 'partial' }}", set: {ctx.way: partial}}
        - {step: done, when: "{{ fanin.status == 'complete' }}", set: {ctx.way: complete}}
  - step: done
    tool:
      kind: python
      input: {rows: "{{ each.results }}", fanin: "{{ each.fanin }}", way: "{{ ctx.way }}"}
      code: |
        squares = [None if row is None else row["data"]["square"] for row in rows]
        result = {"squares": squares, "fanin": fanin, "way": way}
"""

REDUCE = """
workload: {shards: 8}
workflow:
  - step: parts
    loop:
      in: "{{ range(shards) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: fanout, max_in_flight: 4}
    tool:
      kind: python
      code: |
        result = {"number": number, "part": number % 2, "text": "x" * 40000}
    next: reduce
  - step: reduce
    tool:
      - {name: sums, kind: duckdb, tables: {parts: "{{ parts._ref }}"}, query: SUMS}
      - name: code
        kind: python
        input: {parts: "{{ parts.results }}", sums: "{{ sums.rows }}", name: "{{ parts._ref }}"}
        code: |
          rows = [[part["number"], len(part["text"])] for part in parts]
          result = {"rows": rows, "sums": sums, "name": name}
"""
SUMS = (
    "SELECT part, count(*) AS shards, sum(length(text)) AS letters, sum(number) AS numbers"
    " FROM parts GROUP BY part ORDER BY part"
)
REDUCED = REDUCE.replace("SUMS", f"'{SUMS}'")
REDUCED_ON_SPARK = (
    REDUCED.replace("kind: duckdb, tables:", "kind: spark, datasets:")
    .replace("query:", "sql:")
    .replace("{{ sums.rows }}", "{{ sums }}")
)


class ShardCases(EngineCase):
    reduced = REDUCED

    async def test_two_of_fifty_shards_fail_and_the_rest_comes_together(
        self, engine: Engine
    ) -> None:
        async with serving() as target:
            target.bad = frozenset({5, 17})
            target.opens.set()
            execution = await started(engine, self.on_engine(SHARDS), url=target.url)
            result = await said(engine, execution)
        fanin = result["fanin"]
        assert (fanin["status"], fanin["total"]) == ("partial", 50)
        assert (fanin["done"], fanin["failed"]) == (48, 2)
        assert result["way"] == "partial"
        assert result["squares"] == [
            None if number in (5, 17) else number * number for number in range(50)
        ]
        await self._check_shards(engine, execution, target, {"5": 2, "17": 2})

    async def test_three_of_ten_shards_fail_once_and_all_come_together(
        self, engine: Engine
    ) -> None:
        async with serving() as target:
            target.bad_at_first = {2: 1, 3: 1, 7: 1}
            target.opens.set()
            execution = await started(engine, self.on_engine(SHARDS), url=target.url, shards=10)
            result = await said(engine, execution)
        fanin = result["fanin"]
        assert (fanin["status"], fanin["done"], fanin["failed"]) == ("complete", 10, 0)
        assert result["way"] == "complete"
        assert result["squares"] == [number * number for number in range(10)]
        await self._check_shards(engine, execution, target, {"2": 1, "3": 1, "7": 1})

    async def _check_shards(
        self, engine: Engine, execution: ExecutionId, target: Target, failures: dict[str, int]
    ) -> None:
        events = await events_of(engine, execution)
        tries = Counter(each.shard_id for each in events if isinstance(each, ShardFailed))
        assert tries == failures
        done = Counter(each.shard_id for each in events if isinstance(each, ShardDone))
        assert set(done.values()) == {1}
        assert len([each for each in events if isinstance(each, FaninCompleted)]) == 1
        assert set(target.told.values()) == {1}, "what a try has told is not told again"
        workers = await self.check_workers(engine, execution)
        assert workers.total() == len(target.told) + self._tried_again(target)

    def _tried_again(self, target: Target) -> int:
        return target.asked.total() - len(target.asked)

    async def test_a_reduce_has_the_shards_as_one_dataset(self, engine: Engine) -> None:
        execution = await started(engine, self.on_engine(self.reduced))
        result = await said(engine, execution)
        assert result["rows"] == [[number, 40_000] for number in range(8)]
        assert result["sums"] == [
            {"part": 0, "shards": 4, "letters": 160_000, "numbers": 12},
            {"part": 1, "shards": 4, "letters": 160_000, "numbers": 16},
        ]
        await self.check_workers(engine, execution)
        content: Any = await engine.platform.results.content(DEFAULT_SCOPE, result["name"])
        assert [row["number"] for row in content["loop"]["results"]] == list(range(8))
