"""A slot of a stage inside a Spark task: a worker that serves one stage and then leaves.

Its work comes from the server, its data from the store, and user code runs in this process: it is
one apart already.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.objects import open_objects
from noetl.bootstrap.results import open_results
from noetl.bootstrap.settings import child_environment
from noetl.bootstrap.slot_task import SlotTask
from noetl.client.connection import Connection
from noetl.client.credentials import HttpCredentialStore
from noetl.client.frame_journal import HttpFrameJournal
from noetl.client.line import Line
from noetl.client.playbooks import HttpPlaybooks
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.work import StageServed, WorkerIdentity
from noetl.kernel.ids import StageId, WorkerId
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.tool_services import ToolServices
from noetl.runtime.frames_cursor import CursorRows
from noetl.runtime.worker import Worker, WorkerServices
from noetl.spark.slots import Slot
from noetl.tools.cursors import CursorDrivers
from noetl.tools.registry import Tools

FRAMES_AT_ONCE = 1
"""A slot works on one frame; its rows run side by side."""


class SlotDone(msgspec.Struct, frozen=True, kw_only=True):
    reported: int
    lost: int


def run_slot(slot: Slot, argument: bytes) -> bytes:
    """What Spark calls: returns when the stage has no more work."""
    task = msgspec.msgpack.decode(argument, type=SlotTask)
    return msgspec.json.encode(asyncio.run(_serve(slot, task)))


async def _serve(slot: Slot, task: SlotTask) -> SlotDone:
    settings = task.settings
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noetl-slot-")))
        connection = Connection(task.server_url, task.token, Line(task.server_url))
        stack.push_async_callback(connection.close)
        objects = open_objects(settings)
        stack.push_async_callback(objects.close)
        results = await stack.enter_async_context(open_results(settings, objects))
        clock, desk = SystemClock(), HttpWorkDesk(connection)
        given = ToolServices(
            payloads=results.payloads,
            results=results,
            clock=clock,
            desk=desk,
            folder=folder,
            base=Path(task.base),
            environment=child_environment(),
            python_processes_max=1,
            python_memory_bytes_max=settings.python_memory_mb * 1024 * 1024,
        )
        tools, drivers = Tools(given), CursorDrivers(given)
        stack.push_async_callback(tools.close)
        stack.push_async_callback(drivers.close)
        credentials = HttpCredentialStore(connection, settings.scope)
        interpreter = Interpreter(tools, credentials, results, clock, new_uuid)
        services = WorkerServices(
            desk=desk,
            pipelines=interpreter,
            playbooks=HttpPlaybooks(connection),
            results=results,
            journal=HttpFrameJournal(connection),
            clock=clock,
            cursors=CursorRows(
                drivers=drivers, calls=interpreter, desk=desk, results=results, clock=clock
            ),
        )
        worker = Worker(_identity(slot, task, tools.kinds), services)
        await _worked(worker, task.serve_seconds)
        return SlotDone(reported=worker.counts.reported, lost=worker.counts.lost)


async def _worked(worker: Worker, seconds: float) -> None:
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait([running], timeout=seconds)
        if not running.done():
            await worker.drain()
        await running
    finally:
        running.cancel()


def _identity(slot: Slot, task: SlotTask, kinds: tuple[str, ...]) -> WorkerIdentity:
    """A task that is tried again is the same worker under a new boot: what its predecessor held
    is free at once."""
    return WorkerIdentity(
        worker_id=WorkerId(f"spark/{slot.stage_id}/{slot.number}"),
        boot_id=f"{slot.incarnation}",
        slots=FRAMES_AT_ONCE,
        tools=kinds,
        labels={"engine": "spark"},
        placement=task.settings.placement,
        serves=StageServed(execution_id=task.execution_id, stage_id=StageId(slot.stage_id)),
    )
