"""A finished run with results of every kind, and what can happen to its objects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.repairing import open_repairs
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.runtime.results_repair import Verification
from noetl.runtime.results_repair_objects import Named
from noetl.runtime.starting import StartRequest

MIXED = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: mixed, path: repair/mixed}
workload: {rows: 400, trace: ""}
workflow:
  - step: small
    desc: Stays in its event.
    tool: {kind: noop, result: {answer: 42}}
    next: text

  - step: text
    desc: Too large for an event, and no table.
    tool:
      kind: python
      effects: none
      input: {answer: "{{ small.answer }}"}
      code: |
        result = {"text": str(answer) * 80000}
    next: table

  - step: table
    desc: A table.
    tool:
      kind: python
      effects: none
      input: {rows: "{{ workload.rows }}"}
      code: |
        name = "row number " + "of a large table " * 20
        result = {"rows": [{"n": n, "name": name, "half": n / 2} for n in range(rows)]}
    next: each

  - step: each
    desc: Frames, over a collection that is too large for an event.
    loop:
      in: "{{ table.rows }}"
      iterator: row
      spec: {mode: parallel, frame: {max_rows: 100}}
    tool:
      - name: twice
        kind: python
        effects: none
        input: {n: "{{ iter.row.n }}"}
        code: |
          result = {"twice": 2 * n}
    next: told

  - step: told
    desc: A lone effect with a large result.
    tool:
      kind: python
      input: {trace: "{{ workload.trace }}"}
      code: |
        with open(trace, "a") as file:
            file.write("told\\n")
        result = {"text": "told " * 40000}
    next: pair

  - step: pair
    desc: Two effects with large results, and a task without one.
    tool:
      - name: first
        kind: python
        input: {trace: "{{ workload.trace }}"}
        code: |
          with open(trace, "a") as file:
              file.write("first\\n")
          result = {"text": "first " * 40000}
      - name: second
        kind: python
        input: {trace: "{{ workload.trace }}"}
        code: |
          with open(trace, "a") as file:
              file.write("second\\n")
          result = {"text": "second " * 40000}
      - name: both
        kind: python
        effects: none
        input: {one: "{{ first.text }}", other: "{{ second.text }}"}
        code: |
          result = {"length": len(one) + len(other)}
    next: piped

  - step: piped
    desc: Tables that only the step's own result names, and no event.
    tool:
      - name: made
        kind: python
        effects: none
        code: |
          import pyarrow as pa
          ids = pa.array(range(40000), pa.int64())
          wide = pa.array(["x" * 250] * 40000)
          result = {"rows": iter([pa.record_batch({"id": ids, "wide": wide})])}
      - name: rows
        desc: A call of a function that nobody knows counts as an effect.
        kind: duckdb
        query: SELECT range AS id, repeat('x', 250) AS wide FROM range(40000)
      - name: counted
        kind: python
        effects: none
        tables: arrow
        input: {rows: "{{ rows.rows }}", made: "{{ made.rows }}"}
        code: |
          result = {"count": rows.num_rows + made.num_rows}
    next: seen

  - step: seen
    desc: Something else at every asking.
    tool:
      kind: python
      effects: none
      code: |
        import time
        result = {"times": [time.time_ns()] * 10000}
"""
NONE = ExecutionId("")
FIRED = "told\nfirst\nsecond\n"


def without_copies(home: Path, payload_url: str = "file:") -> Settings:
    """No layer of this node keeps anything."""
    return Settings(
        home=str(home),
        result_memory_mb=0,
        result_shared_memory_mb=0,
        result_disk_mb=0,
        payload_url=payload_url,
    )


@dataclass
class Scene:
    settings: Settings
    trace: Path
    execution: ExecutionId = NONE

    async def run(self, text: str = MIXED) -> None:
        async with open_engine(self.settings) as engine:
            scope = self.settings.scope
            registered = await engine.playbooks.register(scope, text)
            request = StartRequest(
                scope=scope, path=registered.entry.path, payload={"trace": str(self.trace)}
            )
            self.execution = await engine.starter.start(request)
            ending = await engine.coordinator.ending(self.execution, 120)
        assert ending is not None
        assert ending.status == "COMPLETED", ending

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[Platform]:
        async with open_platform(self.settings, create=False) as platform:
            yield platform

    async def verify(self, *, repair: bool = False) -> Verification:
        async with self.platform() as platform, open_repairs(self.settings, platform) as repairs:
            return await repairs.verify(self.settings.scope, [self.execution], repair=repair)

    async def named(self) -> dict[str, Named]:
        """By the part of the name after the execution, or the kind of payload."""
        async with self.platform() as platform, open_repairs(self.settings, platform) as repairs:
            found = repairs.named(self.settings.scope, self.execution)
            return {_short(named): named async for named in found}

    async def bytes_of(self, named: Named) -> bytes:
        assert named.key is not None
        async with self.platform() as platform:
            return b"".join([chunk async for chunk in platform.objects.read(named.key)])

    async def delete(self, *lost: Named) -> None:
        async with self.platform() as platform:
            for named in lost:
                assert named.key is not None
                await platform.objects.delete(named.key)

    async def write(self, named: Named, data: bytes) -> None:
        assert named.key is not None
        async with self.platform() as platform:
            await platform.objects.replace(named.key, data)


def _short(named: Named) -> str:
    uri = named.reference.uri
    if "/results/" in uri:
        return uri.partition("/results/")[2].partition("/")[2]
    return f"{named.recorded.envelope.event_type} {named.reference.media_type}"
