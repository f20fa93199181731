"""The HTTP API over an engine: built, bound to an address, announced, and stopped with grace."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import uvicorn

from noetl import __version__
from noetl.api.app import create_app
from noetl.api.following import Following
from noetl.api.guard import is_loopback
from noetl.api.metrics import Metrics, Watched
from noetl.api.services import ApiServices, Keys
from noetl.bootstrap.cells import cell_registry
from noetl.bootstrap.engine import Engine
from noetl.bootstrap.home import Holder
from noetl.bootstrap.repairing import open_repairs, result_collector
from noetl.bootstrap.secret_key import internal_key
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import SettingInvalid
from noetl.runtime.executions import Executions
from noetl.runtime.lineage import Lineage
from noetl.runtime.log_lines import about
from noetl.runtime.replay import Replay
from noetl.runtime.stage_desk import StageDesk

_LOG = logging.getLogger(__name__)
BACKLOG = 4_096
GRACE_SECONDS = 5
"""How long open requests may take once the server stops; workers ask again by themselves."""


async def serve(engine: Engine, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM comes, or the caller cancels; port 0 is any free port."""
    async with listening(engine, host, port) as (address, server, running):
        with _stopped_by_signals(server):
            ready(address)
            await asyncio.shield(running)


@asynccontextmanager
async def listening(
    engine: Engine, host: str, port: int, *, announces: bool = True
) -> AsyncIterator[tuple[str, "_Server", "asyncio.Task[None]"]]:
    """The server while the block lasts: its address, itself, and the task that it runs in.

    One that is announced is found by other commands, which then leave their work to it.
    """
    settings = engine.settings
    if settings.api_key is None and not is_loopback(host):
        raise SettingInvalid(
            f"{host} can be reached by others, so they need a key; set NOETL_API_KEY, or use"
            " 127.0.0.1"
        )
    bound = _bound(host, port)
    address = _address(host, bound)
    services = api_services(engine)
    server = _Server(services)
    running = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        await server.wait_ready(running)
        if announces:
            holder = Holder(pid=os.getpid(), address=address, api_key=settings.api_key)
            engine.home.announce(holder)
        _LOG.info("server started", extra=about(address=address, version=__version__))
        yield address, server, running
    finally:
        _LOG.info("server stops", extra=about(address=address))
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)
        services.metrics.close()
        if announces:
            engine.home.announce(Holder(pid=os.getpid()))


def api_services(engine: Engine) -> ApiServices:
    platform = engine.platform
    watched = Watched(
        coordinator=engine.coordinator,
        log=platform.log,
        projections=platform.projections,
        clock=engine.clock,
        gauges=engine.gauges,
    )
    return ApiServices(
        scope=engine.settings.scope,
        clock=engine.clock,
        log=platform.log,
        payloads=platform.payloads,
        results=platform.results,
        projections=platform.projections,
        catalog=platform.catalog,
        credentials=platform.credentials,
        playbooks=engine.playbooks,
        coordinator=engine.coordinator,
        starter=engine.starter,
        control=engine.control,
        desk=engine.desk,
        journal=engine.journal,
        executions=Executions(platform.log, platform.projections, platform.results),
        lineage=Lineage(platform.log, platform.projections),
        stages=StageDesk(
            engine.desk,
            engine.coordinator,
            platform.projections,
            platform.results,
            engine.settings.scope,
        ),
        replay=Replay(platform.log, platform.snapshots),
        collector=result_collector(platform),
        repairs=partial(open_repairs, engine.settings, platform),
        metrics=Metrics(watched),
        following=Following(engine.coordinator, platform.log),
        keys=Keys(api=engine.settings.api_key, internal=internal_key_of(engine.settings)),
        placement=engine.settings.placement,
        cells=cell_registry(engine.settings),
        version=__version__,
    )


def internal_key_of(settings: Settings) -> str:
    """Credentials are never given to a caller without a key, not even on this machine."""
    return settings.internal_key or internal_key(Path(settings.home), settings.secret_key)


class _Server(uvicorn.Server):
    """Leaves signals alone: uvicorn would raise them again, before the engine has drained."""

    def __init__(self, services: ApiServices) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(services),
                lifespan="off",
                ws="none",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._services = services
        self._is_ready = asyncio.Event()

    async def wait_ready(self, running: "asyncio.Task[None]") -> None:
        waiting = asyncio.ensure_future(self._is_ready.wait())
        await asyncio.wait([waiting, running], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if running.done():
            running.result()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._services.following.close()  # streams end first: nobody waits for them
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _stopped_by_signals(server: _Server) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()

    def stop() -> None:
        server.force_exit = server.should_exit  # the second time nobody is waited for
        server.should_exit = True

    for each in signals:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of gathering them.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SettingInvalid(
            f"nothing can listen on {host}:{port}: {error.strerror}; choose another port with"
            " --port, or stop who has this one"
        ) from error
    listening.setblocking(False)
    return listening


def _address(host: str, listening: socket.socket) -> str:
    """Where it can be reached from this machine."""
    port = listening.getsockname()[1]
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    return f"http://{f'[{reached}]' if ':' in reached and '[' not in reached else reached}:{port}"
