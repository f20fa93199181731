"""Two processes to be killed: a server that holds the log, and a worker that only talks to it."""

import asyncio
import signal
from typing import Any

from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.remote_worker import run_worker
from noetl.bootstrap.serving import serve
from noetl.bootstrap.settings import Settings
from noetl.servers.process import LOOPBACK
from tests.crash.engine import ending_words, start_mixed
from tests.crash.words import tell

WORKER_SLOTS = 20


def settings_of(home: str) -> Settings:
    """The shortest lease there is: whoever takes over from a dead worker has to wait for it."""
    key = "a key that server and worker share"
    return Settings(
        home=home,
        python_processes=1,
        lease_seconds=1.0,
        internal_key=key,
        attempts_max=1_000,  # it is we who kill the holders, not the commands
    )


def serve_main(order: dict[str, Any]) -> None:
    asyncio.run(_serve(order))
    signal.pause()  # whoever gave the order kills it


async def _serve(order: dict[str, Any]) -> None:
    async with open_engine(settings_of(order["home"]), has_worker=False) as engine:
        ready = asyncio.Event()
        serving = asyncio.create_task(serve(engine, LOOPBACK, order["port"], lambda _: ready.set()))
        await ready.wait()
        execution = await start_mixed(engine, order)
        tell({"serving": execution})
        tell(await ending_words(engine, execution))
        await serving


def work_main(order: dict[str, Any]) -> None:
    server = f"http://{LOOPBACK}:{order['port']}"
    asyncio.run(run_worker(settings_of(order["home"]), server, WORKER_SLOTS))
