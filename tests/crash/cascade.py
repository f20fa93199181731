"""A process that is killed while it cancels a tree of executions, or looks what became of it."""

import asyncio
import signal
from typing import Any

from noetl.bootstrap.engine import Engine, open_engine
from noetl.domain.projection import ProjectionQuery
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from tests.crash.engine import Deadline, settings_of
from tests.crash.words import tell

DEPTH = 3
TREE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: tree, path: crash/tree}
workload: {depth: 1}
workflow:
  - step: fork
    next:
      arcs: [{step: deeper, when: "{{ depth > 1 }}"}, {step: sleep}]
  - step: deeper
    tool: {kind: playbook, path: crash/tree, input: {depth: "{{ depth - 1 }}"}}
  - step: sleep
    tool: {kind: shell, command: sleep 600}
"""


def main(order: dict[str, Any]) -> None:
    asyncio.run(_look(order) if order["appends"] == 0 else _cancel(order))
    signal.pause()  # whoever gave the order kills it


async def _cancel(order: dict[str, Any]) -> None:
    async with open_engine(settings_of(order["home"])) as engine:
        scope = engine.settings.scope
        await engine.playbooks.register(scope, TREE)
        asleep = asyncio.Event()

        def look(*_: object) -> None:
            if _is_asleep(engine):
                asleep.set()

        engine.coordinator.listeners.append(look)
        root = await engine.starter.start(
            StartRequest(
                scope=scope,
                path="crash/tree",
                payload={"depth": DEPTH},
                execution_id=ExecutionId(order["execution"]),
            )
        )
        await asleep.wait()
        engine.coordinator.listeners.append(Deadline(order["appends"]).count)
        await engine.control.cancel(scope, root, reason="told so", cascade=order["cascade"])
        tell({"cancelled": root})


def _is_asleep(engine: Engine) -> bool:
    """Whether the deepest one runs."""
    states = [running.state for running in engine.coordinator.running.values()]
    commands = [row for state in states for row in state.commands.values()]
    return len(states) == DEPTH and any(row.step == "sleep" for row in commands)


async def _look(order: dict[str, Any]) -> None:
    """Statuses from the root down; the engine has just recovered."""
    async with open_engine(settings_of(order["home"]), has_worker=False) as engine:
        query = ProjectionQuery(scope=engine.settings.scope, projection_type="execution")
        names = [record.execution_id for record in await engine.platform.projections.query(query)]
        states = [(await engine.coordinator.load(name)).state for name in sorted(names)]
        tell({"statuses": [state.execution.status for state in states]})
