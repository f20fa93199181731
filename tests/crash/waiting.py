"""A process that is killed while a playbook waits; it has no worker, so nobody holds the wait."""

import asyncio
import signal
from typing import Any

from noetl.bootstrap.engine import open_engine
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from tests.crash.engine import ending_words, settings_of
from tests.crash.words import tell

WAITING = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waiting, path: crash/waiting}
workload: {seconds: 1}
workflow:
  - {step: first, tool: {kind: wait, seconds: "{{ seconds }}"}, next: second}
  - {step: second, tool: {kind: wait, seconds: 0}}
"""


def main(order: dict[str, Any]) -> None:
    asyncio.run(_run(order))
    signal.pause()  # whoever gave the order kills it


async def _run(order: dict[str, Any]) -> None:
    async with open_engine(settings_of(order["home"]), has_worker=False) as engine:
        scope = engine.settings.scope
        await engine.playbooks.register(scope, WAITING)
        execution = await engine.starter.start(
            StartRequest(
                scope=scope,
                path="crash/waiting",
                payload={"seconds": order["seconds"]},
                execution_id=ExecutionId(order["execution"]),
            )
        )
        tell({"running": execution})
        tell(await ending_words(engine, execution))
