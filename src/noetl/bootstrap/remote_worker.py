"""A worker on another machine: its work comes from a server, its payloads from a shared store."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.background import in_background
from noetl.bootstrap.objects import SERVER, open_objects
from noetl.bootstrap.results import keep_swept, open_results
from noetl.bootstrap.secret_key import known_internal_key
from noetl.bootstrap.settings import Settings, child_environment
from noetl.bootstrap.telemetry import open_telemetry, traced
from noetl.client.connection import Connection
from noetl.client.credentials import HttpCredentialStore
from noetl.client.frame_journal import HttpFrameJournal
from noetl.client.line import Line
from noetl.client.object_store import HttpObjectStore
from noetl.client.playbooks import HttpPlaybooks
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.work import WorkerIdentity
from noetl.kernel.ids import WorkerId
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.clock import Clock
from noetl.ports.object_store import ObjectStore
from noetl.ports.tool_services import ToolServices
from noetl.results.store import ResultStore
from noetl.runtime.frames_cursor import CursorRows
from noetl.runtime.worker import Worker, WorkerServices
from noetl.tools.cursors import CursorDrivers
from noetl.tools.registry import Tools


@dataclass(frozen=True, slots=True)
class Named:
    """What a worker is called, and what people say of it."""

    name: str | None = None  # None: made of the machine and the process
    labels: Mapping[str, str] = field(default_factory=dict)


async def run_worker(
    settings: Settings, server_url: str, slots: int, named: Named | None = None
) -> None:
    """Works until SIGTERM or SIGINT, then lets what runs come to its end; a second one drops it.

    Large results are in the settings' payload store, which all workers and the server share; what
    they record of frames is kept by the server.
    """
    async with AsyncExitStack() as stack:
        connection = Connection(server_url, _key(settings), Line(server_url))
        stack.push_async_callback(connection.close)
        objects = _objects(settings, connection)
        stack.push_async_callback(objects.close)
        results = await stack.enter_async_context(open_results(settings, objects))
        clock = SystemClock()
        await stack.enter_async_context(in_background(keep_swept(results, clock)))
        telemetry = open_telemetry(settings, clock, "worker")
        stack.push_async_callback(telemetry.close)
        desk = HttpWorkDesk(connection)
        given = _tool_services(settings, results, clock, desk)
        tools, drivers = Tools(given), CursorDrivers(given)
        stack.push_async_callback(tools.close)
        stack.push_async_callback(drivers.close)
        credentials = HttpCredentialStore(connection, settings.scope)
        interpreter = Interpreter(traced(tools, telemetry), credentials, results, clock, new_uuid)
        services = WorkerServices(
            desk=desk,
            pipelines=interpreter,
            playbooks=HttpPlaybooks(connection),
            results=results,
            journal=HttpFrameJournal(connection),
            clock=clock,
            telemetry=telemetry,
            cursors=CursorRows(
                drivers=drivers,
                calls=interpreter,
                desk=desk,
                results=results,
                clock=clock,
            ),
        )
        identity = _identity(settings, slots, tools.kinds, named or Named())
        worker = Worker(identity, services)
        if settings.worker_metrics_port is not None:
            # Only here: most workers show no numbers, and the library is not small.
            metrics = import_module("noetl.bootstrap.worker_metrics")
            numbers = metrics.WorkerNumbers(identity, worker, tools.gauges, results)
            stack.enter_context(metrics.shown(numbers, settings.worker_metrics_port))
        await _work(worker)


def _objects(settings: Settings, connection: Connection) -> ObjectStore:
    """A store that we reach ourselves, or the server's through the server."""
    return HttpObjectStore(connection) if settings.payload_url == SERVER else open_objects(settings)


def _key(settings: Settings) -> str | None:
    """Given, or that of a home that we share with the server."""
    shared = known_internal_key(Path(settings.home), settings.secret_key)
    return settings.internal_key or shared or settings.api_key


async def _work(worker: Worker) -> None:
    working = asyncio.create_task(worker.run())
    draining: list[asyncio.Task[None]] = []

    def stop() -> None:
        if draining:
            working.cancel()
        else:
            draining.append(asyncio.create_task(worker.drain()))

    with _on_signals(stop):
        try:
            await asyncio.wait([working])
        finally:
            working.cancel()
            await asyncio.gather(working, *draining, return_exceptions=True)
    if not working.cancelled():
        working.result()


def _tool_services(
    settings: Settings, results: ResultStore, clock: Clock, desk: HttpWorkDesk
) -> ToolServices:
    return ToolServices(
        payloads=results.payloads,
        results=results,
        clock=clock,
        desk=desk,
        folder=Path(settings.home) / "work",
        base=Path.cwd(),
        environment=child_environment(),
        python_processes_max=settings.processors,
        python_memory_bytes_max=settings.python_memory_mb * 1024 * 1024,
    )


def _identity(
    settings: Settings, slots: int, kinds: tuple[str, ...], named: Named
) -> WorkerIdentity:
    """The same process keeps its name; a new one is another worker."""
    return WorkerIdentity(
        worker_id=WorkerId(named.name or f"{socket.gethostname()}-{os.getpid()}"),
        boot_id=new_uuid(),
        slots=slots,
        tools=kinds,
        labels=dict(named.labels),
        placement=settings.placement,
    )


@contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
