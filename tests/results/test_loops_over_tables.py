"""A loop over a large stored table: its frames read their own rows, and nothing is copied."""

from pathlib import Path

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.repairing import open_repairs
from noetl.bootstrap.settings import Settings
from noetl.domain.events import LoopStarted
from noetl.domain.events.values import ResultReference
from noetl.kernel.ids import ExecutionId, StepName
from noetl.runtime.executions import Executions
from noetl.runtime.starting import StartRequest
from noetl.wire.codec import open_stored

END_SECONDS = 120
ROWS = 2_000

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: over, path: tests/over}
workflow:
  - step: make
    tool:
      kind: python
      code: |
        result = {"rows": [{"id": i, "text": "x" * 5_000} for i in range(2_000)], "made": "here"}
    next: each
  - step: each
    loop: {in: "{{ make.rows }}", iterator: item, spec: {mode: parallel, frame: {max_rows: 300}}}
    tool: {kind: noop, result: "{{ item.id + item.text | length }}"}
    next: last
  - {step: last, tool: {kind: noop, result: "{{ each.results | sum }}"}}
"""


async def run(engine: Engine) -> ExecutionId:
    scope = engine.settings.scope
    await engine.playbooks.register(scope, PLAYBOOK)
    execution = await engine.starter.start(StartRequest(scope=scope, path="tests/over"))
    ending = await engine.coordinator.ending(execution, END_SECONDS)
    assert ending is not None
    assert ending.status == "COMPLETED", ending
    return execution


async def collection_of(engine: Engine, execution: ExecutionId) -> ResultReference | None:
    events = [open_stored(each).event for each in await engine.platform.log.read(execution)]
    (started,) = [event for event in events if isinstance(event, LoopStarted)]
    assert started.collection is None
    assert started.collection_size == ROWS
    return started.collection_ref


async def test_the_collection_is_the_table_itself(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    async with open_engine(settings) as engine:
        execution = await run(engine)
        platform = engine.platform
        executions = Executions(platform.log, platform.projections, platform.results)
        results = dict((await executions.state(settings.scope, execution)).results)
        assert results[StepName("last")].context["value"] == sum(range(ROWS)) + 5_000 * ROWS
        made = results[StepName("make")].reference
        assert made is not None
        assert await collection_of(engine, execution) == made
        objects = platform.results.objects
        (table,) = [
            each for each in await objects.list_objects("") if each.byte_length == made.byte_length
        ]
        await objects.delete(table.key)
        async with open_repairs(settings, platform) as repairs:
            found = await repairs.verify(settings.scope, [execution], repair=True)
    (finding,) = found.findings
    assert (finding.uri, finding.cannot) == (made.uri, None)
