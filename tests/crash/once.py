"""The process that dies at a named point: an engine with a worker whose ports are wrapped."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import noetl.tools.http  # forked processes need not import it again
import noetl.tools.noop  # noqa: F401
from noetl.adapters.system.chance import new_uuid
from noetl.bootstrap.background import in_background
from noetl.bootstrap.engine import LOCAL_WORKER, Engine, open_engine
from noetl.domain.work import WorkerIdentity
from noetl.kernel.ids import ExecutionId
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.tool_services import ToolServices
from noetl.results import feather  # noqa: F401
from noetl.results.store import ResultStore
from noetl.runtime.starting import StartRequest
from noetl.runtime.worker import Worker, WorkerServices
from noetl.tools.registry import Tools
from tests.crash.engine import ending_words, settings_of
from tests.crash.once_forgetting import ForgetfulDesk, ForgetfulJournal, KeylessTools
from tests.crash.once_playbook import ONCE
from tests.crash.once_points import (
    Crossings,
    MortalDesk,
    MortalJournal,
    MortalObjects,
    MortalTools,
)
from tests.crash.words import tell

SLOTS = 8


def main(order: dict[str, Any]) -> None:
    asyncio.run(_run(order))
    signal.pause()  # whoever gave the order kills it


async def _run(order: dict[str, Any]) -> None:
    crossings = Crossings(order["point"], order["number"])
    async with (
        open_engine(settings_of(order["home"]), has_worker=False) as engine,
        _working(engine, crossings, order["without"]),
    ):
        await engine.playbooks.register(engine.settings.scope, ONCE)
        started = [await _start(engine, name, order["url"]) for name in order["executions"]]
        for execution in started:
            words = await ending_words(engine, execution)
            tell({**words, "execution": execution})
        tell({"closing": True})


async def _start(engine: Engine, execution: str, url: str) -> ExecutionId:
    """Under the id that was ordered: started again it goes on."""
    request = StartRequest(
        scope=engine.settings.scope,
        path="crash/once",
        payload={"url": url, "me": execution},
        execution_id=ExecutionId(execution),
    )
    return await engine.starter.start(request)


@asynccontextmanager
async def _working(
    engine: Engine, crossings: Crossings, without: str | None
) -> AsyncIterator[None]:
    """The worker of an engine, as the engine itself makes it, but for its ports."""
    services, tools = _services(engine, crossings, without)
    identity = WorkerIdentity(
        worker_id=LOCAL_WORKER, boot_id=new_uuid(), slots=SLOTS, tools=tools.kinds
    )
    try:
        async with in_background(Worker(identity, services).run()):
            yield
    finally:
        await tools.close()


def _services(
    engine: Engine, crossings: Crossings, without: str | None
) -> tuple[WorkerServices, Tools]:
    platform, clock = engine.platform, engine.clock
    objects = MortalObjects(platform.objects, crossings)
    results = ResultStore(
        objects, platform.payloads, platform.results.placement, platform.results.chain
    )
    tools = Tools(
        ToolServices(
            payloads=platform.payloads,
            results=results,
            clock=clock,
            desk=engine.desk,
            folder=Path(engine.settings.home) / "work",
            base=Path.cwd(),
            environment={},
            python_processes_max=1,
            python_memory_bytes_max=1 << 30,
        )
    )
    journal: Any = MortalJournal(engine.journal, crossings)
    desk: Any = MortalDesk(engine.desk, crossings)
    called: Any = MortalTools(tools, crossings)
    if without == "memory":
        journal, desk = ForgetfulJournal(journal), ForgetfulDesk(desk)
    elif without == "keys":
        called = KeylessTools(called, new_uuid())
    pipelines = Interpreter(called, platform.credentials, results, clock, new_uuid)
    services = WorkerServices(
        desk=desk,
        pipelines=pipelines,
        playbooks=engine.playbooks,
        results=results,
        journal=journal,
        clock=clock,
    )
    return services, tools
