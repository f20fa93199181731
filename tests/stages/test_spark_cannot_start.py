"""A loop that asks for Spark where Spark does not start: it is said, and local workers go on."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from tests.stages.stage_scene import ended, started, workers_of

pytestmark = pytest.mark.servers

LOOP = """
workflow:
  - step: each
    loop: {in: "{{ range(100) | list }}", iterator: number, engine: spark, spec: {mode: parallel}}
    tool: {kind: noop, result: "{{ number }}"}
"""


async def test_rows_do_not_wait_for_a_spark_that_cannot_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    no_memory = "spark.driver.memory=1k"  # no JVM starts with that
    async with open_engine(Settings(home=str(tmp_path / "home"), spark_conf=no_memory)) as engine:
        execution = await started(engine, LOOP)
        assert (await ended(engine, execution)).status == "COMPLETED"
        assert set(await workers_of(engine, execution)) == {"local"}
    assert "its engine cannot be had" in caplog.text
    assert "Spark did not start" in caplog.text
