"""A loop over a playbook that loops: inner rows run on the engine, outer ones wait for them."""

from noetl.bootstrap.engine import Engine
from noetl.domain.events import ChildStarted
from noetl.kernel.scope import DEFAULT_SCOPE
from tests.stages.engine_case import EngineCase
from tests.stages.stage_scene import HEAD, events_of, said, serving, started

OUTER = """
workload: {url: ""}
workflow:
  - step: each
    loop:
      in: [100, 200, 300]
      iterator: base
      engine: ENGINE
      spec: {mode: parallel, max_in_flight: 2}
    tool:
      kind: playbook
      path: tests/stage-child
      return_step: done
      input: {url: "{{ url }}", base: "{{ iter.base }}"}
    next: done
  - step: done
    tool: {kind: noop, result: "{{ each.results }}"}
"""
INNER = """
workload: {url: "", base: 0}
workflow:
  - step: each
    loop:
      in: "{{ range(base, base + 12) | list }}"
      iterator: number
      engine: ENGINE
      spec: {mode: parallel, max_in_flight: 4, frame: {max_rows: 4, row_concurrency: 4}}
    tool:
      - {name: ask, kind: http, url: "{{ url }}/ask", params: {number: "{{ iter.number }}"}}
      - {name: tell, kind: http, method: POST, url: "{{ url }}/tell",
         json: {number: "{{ iter.number }}"}}
      - {name: answer, kind: noop, result: "{{ ask.data.square }}"}
    next: done
  - step: done
    tool: {kind: noop, result: {base: "{{ base }}", squares: "{{ each.results }}"}}
"""


class NestedCases(EngineCase):
    async def test_a_loop_over_a_playbook_that_loops(self, engine: Engine) -> None:
        child_head = HEAD.replace("tests/stage", "tests/stage-child")
        await engine.playbooks.register(DEFAULT_SCOPE, child_head + self.on_engine(INNER))
        async with serving() as target:
            target.opens.set()
            execution = await started(engine, self.on_engine(OUTER), url=target.url)
            results = await said(engine, execution)
        for base, result in zip((100, 200, 300), results, strict=True):
            assert result["base"] == base
            assert result["squares"] == [number * number for number in range(base, base + 12)]
        assert len(target.told) == 36
        assert set(target.told.values()) == {1}
        await self.check_stays_here(engine, execution)
        events = await events_of(engine, execution)
        children = [each.child_execution_id for each in events if isinstance(each, ChildStarted)]
        assert len(children) == 3
        for child in children:
            await said(engine, child)
            assert (await self.check_workers(engine, child)).total() == 3
