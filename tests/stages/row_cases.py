"""Rows of collections: their order, their failures and retries, and how many run at once."""

from noetl.bootstrap.engine import Engine
from tests.stages.engine_case import EngineCase
from tests.stages.stage_scene import ended, said, serving, started

LOOP = """
workload: {url: "", first: 0, rows: 100}
workflow:
  - step: each
    loop:
      in: "{{ range(first, first + rows) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: parallel, max_in_flight: 8, frame: {max_rows: 20, row_concurrency: 4}}
    spec: {policy: {failure: {mode: fail_fast}}}
    tool:
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.number }}"},
         timeout: 120}
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.number }}"}, set: {ctx.last: "{{ iter.number }}"}}
      - {name: answer, kind: noop, result: {square: "{{ ask.data.square }}"}}
    next: done
  - step: done
    tool:
      kind: noop
      result:
        squares: "{{ each.results | map(attribute='square') | list }}"
        stats: "{{ each.stats }}"
        last: "{{ ctx.last }}"
"""
COUNTED = LOOP.replace("mode: fail_fast", "mode: continue")

RETRIED = """
workload: {url: "", rows: 20}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: parallel, max_in_flight: 4, frame: {max_rows: 5, row_concurrency: 2}}
    spec: {policy: {failure: {mode: continue}}}
    tool:
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.number }}"}}
      - name: ask
        kind: http
        url: "{{ url }}/ask"
        params: {number: "{{ iter.number }}"}
        spec:
          policy:
            rules:
              - when: "{{ output.error.retryable }}"
                then: {do: retry, attempts: 3, backoff: fixed, delay: 0.05}
    next: done
  - step: done
    tool: {kind: noop, result: "{{ each.stats }}"}
"""

FRAMES = """
workload: {url: "", rows: 10}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: parallel, max_in_flight: 2,
             frame: {max_rows: 4, row_concurrency: 1, process: frame}}
    tool:
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {numbers: "{{ iter.number_rows }}"}}
      - {name: answer, kind: noop,
         result: {rows: "{{ iter.number }}", place: "{{ frame.base_index }}"}}
    next: done
  - step: done
    tool: {kind: noop, result: "{{ each.results }}"}
"""

SEQUENTIAL = """
workload: {url: "", rows: 12}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: sequential, frame: {max_rows: 5}}
    tool:
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.number }}"}}
      - {name: sum, kind: noop, result: {before: "{{ ctx.sum | default(0) }}"},
         set: {ctx.sum: "{{ (ctx.sum | default(0)) + ask.data.square }}"}}
    next: done
  - step: done
    tool:
      kind: noop
      result: {before: "{{ each.results | map(attribute='before') | list }}", sum: "{{ ctx.sum }}"}
"""


class RowCases(EngineCase):
    async def test_rows_come_back_in_order_and_effects_happen_once(self, engine: Engine) -> None:
        async with serving() as target:
            target.opens.set()
            execution = await started(engine, self.on_engine(LOOP), url=target.url, rows=200)
            result = await said(engine, execution)
        assert result["squares"] == [number * number for number in range(200)]
        assert (result["stats"]["succeeded"], result["stats"]["failed"]) == (200, 0)
        assert result["last"] == 199
        assert len(target.told) == 200
        assert set(target.told.values()) == {1}
        workers = await self.check_workers(engine, execution)
        assert workers.total() == 10, "rows are handed out by frames"

    async def test_failed_rows_are_counted_when_the_loop_may_go_on(self, engine: Engine) -> None:
        async with serving() as target:
            target.bad = frozenset({5, 77})
            target.opens.set()
            execution = await started(engine, self.on_engine(COUNTED), url=target.url)
            stats = (await said(engine, execution))["stats"]
        assert (stats["total"], stats["succeeded"], stats["failed"]) == (100, 98, 2)
        assert len(target.told) == 98
        await self.check_workers(engine, execution)

    async def test_a_failed_row_ends_the_loop_when_it_may_not(self, engine: Engine) -> None:
        async with serving() as target:
            target.bad = frozenset({5})
            target.opens.set()
            execution = await started(engine, self.on_engine(LOOP), url=target.url, rows=1_000)
            ending = await ended(engine, execution)
        assert ending.status == "FAILED"
        assert ending.error is not None
        assert ending.error.kind == "client_error"
        workers = await self.check_workers(engine, execution)
        assert workers.total() < 50, "no frame begins after the first failed row"

    async def test_rows_that_fail_for_a_while_are_tried_again(self, engine: Engine) -> None:
        async with serving() as target:
            target.bad_at_first = {3: 1, 11: 2, 17: 99}
            target.opens.set()
            execution = await started(engine, self.on_engine(RETRIED), url=target.url)
            stats = await said(engine, execution)
        assert (stats["succeeded"], stats["failed"]) == (19, 1)
        tries = {3: 2, 11: 3, 17: 3}
        assert target.asked == {number: tries.get(number, 1) for number in range(20)}
        assert set(target.told.values()) == {1}, "what a row did before is not done again"
        await self.check_workers(engine, execution)

    async def test_so_many_rows_run_at_once_as_the_loop_says(self, engine: Engine) -> None:
        async with serving() as target:
            target.together = 8  # nobody is answered before two frames have four rows each here
            target.opens.set()
            execution = await started(engine, self.on_engine(LOOP), url=target.url, rows=80)
            assert len((await said(engine, execution))["squares"]) == 80
        assert target.here_max == 8
        await self.check_workers(engine, execution)

    async def test_a_whole_frame_is_one_run_of_the_pipeline(self, engine: Engine) -> None:
        async with serving() as target:
            execution = await started(engine, self.on_engine(FRAMES), url=target.url)
            results = await said(engine, execution)
        frames = {first: results[first] for first in (0, 4, 8)}
        assert frames == {
            0: {"rows": [0, 1, 2, 3], "place": 0},
            4: {"rows": [4, 5, 6, 7], "place": 4},
            8: {"rows": [8, 9], "place": 8},
        }
        assert len(target.told) == 3
        assert set(target.told.values()) == {1}
        assert (await self.check_workers(engine, execution)).total() == 3

    async def test_rows_of_a_sequential_loop_see_what_those_before_have_set(
        self, engine: Engine
    ) -> None:
        async with serving() as target:
            target.opens.set()
            execution = await started(engine, self.on_engine(SEQUENTIAL), url=target.url)
            result = await said(engine, execution)
        sums = [sum(number * number for number in range(end)) for end in range(13)]
        assert result == {"before": sums[:12], "sum": sums[12]}
        assert target.here_max == 1
        await self.check_stays_here(engine, execution)
