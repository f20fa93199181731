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
from noetl.bootstrap import collector
from noetl.bootstrap.background import in_background
from noetl.bootstrap.cells import own_store
from noetl.bootstrap.far_worker import FarTools
from noetl.bootstrap.objects import SERVER, open_objects
from noetl.bootstrap.results import keep_swept, open_results
from noetl.bootstrap.secret_key import known_internal_key
from noetl.bootstrap.settings import Settings
from noetl.bootstrap.telemetry import open_telemetry
from noetl.client.connection import Connection
from noetl.client.line import Line
from noetl.client.object_store import HttpObjectStore
from noetl.domain.work import WorkerIdentity
from noetl.kernel.ids import WorkerId
from noetl.ports.object_store import ObjectStore
from noetl.runtime.placing import LOCALITY, place_in
from noetl.runtime.worker import Worker


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
        far = FarTools(settings, results, Path(settings.home) / "work", Path.cwd())
        stack.push_async_callback(far.close)
        identity = _identity(settings, slots, far.tools.kinds, named or Named())
        worker = Worker(identity, far.services(connection, telemetry))
        collector.settle()
        if settings.worker_metrics_port is not None:
            # Only here: most workers show no numbers, and the library is not small.
            metrics = import_module("noetl.bootstrap.worker_metrics")
            numbers = metrics.WorkerNumbers(identity, worker, far.tools.gauges, results)
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
        store=own_store(settings),
        locality=place_in({LOCALITY: {"node": settings.node_name, **named.labels}}),
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
