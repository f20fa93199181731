"""Playbooks with spark tasks: over what loops gave, by name, and not outliving their execution."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.endings import Ending
from noetl.runtime.starting import StartRequest
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.spark.driving import WAIT_SECONDS_MAX
from tests.spark.test_work import WAITING, until_there

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]

ROWS = 3_000
ENDING_SECONDS_MAX = 400.0
TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sums, path: tests/sums}
workload: {rows: 3000}
workflow:
  - step: load
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      spec: {mode: parallel, max_in_flight: 8, frame: {max_rows: 1000}}
    tool:
      kind: noop
      result: {id: "{{ iter.number }}", group: "{{ iter.number % 7 }}", text: "{{ 'x' * 60 }}"}
    next: sums
  - step: sums
    tool:
      kind: spark
      datasets: {loaded: "{{ load._ref }}"}
      sql: |
        SELECT group, count(*) AS rows, sum(id) AS total FROM loaded GROUP BY group ORDER BY group
    next: large
  - step: large
    tool:
      kind: spark
      datasets: {loaded: "{{ load._ref }}", sums: "{{ sums }}"}
      sql: |
        SELECT loaded.id, loaded.text, sums.total FROM loaded JOIN sums ON loaded.group = sums.group
        ORDER BY loaded.id
    next: again
  - step: again
    tool:
      - name: count
        kind: spark
        inputs: {large: "{{ large }}"}
        code: |
          def main(spark, large, least):
              return {"rows": large.where(large.id >= least).count()}
        input: {least: 1000}
      - name: python
        kind: python
        input: {sums: "{{ sums }}", rows: "{{ large }}", counted: "{{ count.rows }}"}
        code: |
          def main(sums, rows, counted):
              return {"sums": sums, "ids": sum(row["id"] for row in rows), "counted": counted}
    next: done
  - step: done
    tool:
      kind: noop
      result:
        python: "{{ again }}"
        last: "{{ large[2999].id }}"
        stored: "{{ large._ref }}"
"""
CANCELLED = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: endless, path: tests/endless}
workload: {where: ""}
workflow:
  - step: wait
    tool:
      kind: spark
      input: {where: "{{ where }}"}
      code: |
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    settings = Settings(
        home=str(tmp_path_factory.mktemp("home")), stage_engine="local", spark_memory_mb=512
    )
    async with open_engine(settings) as running:
        yield running


async def started(engine: Engine, text: str, path: str, **payload: Any) -> ExecutionId:
    await engine.playbooks.register(DEFAULT_SCOPE, text)
    return await engine.starter.start(StartRequest(scope=DEFAULT_SCOPE, path=path, payload=payload))


async def ended(engine: Engine, execution: ExecutionId) -> Ending:
    ending = await engine.coordinator.ending(execution, ENDING_SECONDS_MAX)
    assert ending is not None
    return ending


async def test_a_playbook_reduces_the_dataset_of_its_loop_on_spark(engine: Engine) -> None:
    ending = await ended(engine, await started(engine, TEXT, "tests/sums"))
    assert ending.status == "COMPLETED", ending
    assert ending.result is not None
    result = plain_result(value_of(ending.result))
    assert result["python"]["sums"] == [
        {"group": group, "rows": len(numbers), "total": sum(numbers)}
        for group in range(7)
        for numbers in [range(group, ROWS, 7)]
    ]
    assert result["python"]["ids"] == sum(range(ROWS))
    assert result["python"]["counted"] == ROWS - 1_000
    assert result["last"] == ROWS - 1
    assert result["stored"].endswith("/large/0/0/1@1")


async def test_a_cancelled_execution_leaves_no_job(engine: Engine, tmp_path: Path) -> None:
    code = "".join(f"        {line}\n" for line in WAITING.splitlines())
    execution = await started(engine, CANCELLED + code, "tests/endless", where=str(tmp_path))
    await asyncio.to_thread(until_there, tmp_path / "running")
    assert len(await engine.spark.running_tags()) == 1
    await engine.control.cancel(DEFAULT_SCOPE, execution)
    assert (await ended(engine, execution)).status == "CANCELLED"
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while await engine.spark.running_tags():  # asking takes a turn of the driver
            await engine.clock.sleep(0.1)
