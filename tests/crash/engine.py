"""The process that is killed while it runs a playbook: an engine that starts it, or goes on."""

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.crash.mixed import CHILD, MIXED
from tests.crash.words import tell

RUN_SECONDS_MAX = 150.0


def settings_of(home: str) -> Settings:
    # A command that kills its holders is given up in the end; here it is we who kill them.
    return Settings(home=home, python_processes=1, attempts_max=1_000)


def main(order: dict[str, Any]) -> None:
    asyncio.run(run(order))
    signal.pause()  # whoever gave the order kills it


async def run(order: dict[str, Any]) -> None:
    async with open_engine(settings_of(order["home"])) as engine:
        if order["appends"]:
            engine.coordinator.listeners.append(Deadline(order["appends"]).count)
        execution = await start_mixed(engine, order)
        tell({"running": execution})
        tell(await ending_words(engine, execution))
    tell({"closed": execution})


async def start_mixed(engine: Engine, order: dict[str, Any]) -> ExecutionId:
    """Under the id that was ordered: started again it goes on."""
    for text in (CHILD, MIXED):
        await engine.playbooks.register(engine.settings.scope, text)
    return await engine.starter.start(
        StartRequest(
            scope=engine.settings.scope,
            path="crash/mixed",
            payload={"url": order["url"], "trace": order["trace"], **order.get("payload", {})},
            execution_id=ExecutionId(order["execution"]),
        )
    )


async def ending_words(engine: Engine, execution: ExecutionId) -> dict[str, Any]:
    ending = await engine.coordinator.ending(execution, RUN_SECONDS_MAX)
    if ending is None:
        states = {
            name: [len(running.state.commands), len(running.state.frames), running.state.open_steps]
            for name, running in engine.coordinator.running.items()
        }
        raise TimeoutError(f"{execution} has not ended: {states}")
    result = None if ending.result is None else plain_result(value_of(ending.result))
    return {"over": ending.status, "result": result, "error": str(ending.error)}


class Deadline:
    """Death after a number of appends, as soon as the last of them is durable."""

    def __init__(self, appends: int) -> None:
        self._left = appends

    def count(self, _execution: ExecutionId, _events: Sequence[SealedEvent]) -> None:
        self._left -= 1
        if self._left == 0:
            tell({"dying": True})
            os.kill(os.getpid(), signal.SIGKILL)
