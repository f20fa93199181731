"""A process that is killed while its playbook's job runs: `python -m tests.spark.restarting …`."""

import asyncio
import sys
from pathlib import Path

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.settings import Settings
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.starting import StartRequest
from tests.spark.test_work import WAITING

PATH = "tests/restarted"
TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: restarted, path: tests/restarted}
workload: {where: ""}
workflow:
  - step: wait
    tool:
      kind: spark
      input: {where: "{{ where }}"}
      code: |
"""


def settings_at(home: Path) -> Settings:
    return Settings(home=str(home), stage_engine="local", spark_memory_mb=512)


async def run(home: Path, where: Path) -> None:
    """Writes the execution's id, and waits to be killed."""
    code = "".join(f"        {line}\n" for line in WAITING.splitlines())
    async with open_engine(settings_at(home)) as engine:
        await engine.playbooks.register(DEFAULT_SCOPE, TEXT + code)
        request = StartRequest(scope=DEFAULT_SCOPE, path=PATH, payload={"where": str(where)})
        execution = await engine.starter.start(request)
        await asyncio.to_thread((where / "execution").write_text, execution)
        await engine.coordinator.ending(execution, 600)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), Path(sys.argv[2])))
