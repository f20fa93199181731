"""A worker in a process of its own: it takes work from a server, and leaves when it is told to."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from noetl.bootstrap.settings import Settings
from tests.api.running import HELLO, Api, running_api

KEY = "for-workers-only"
PROGRAM = """
import asyncio, sys
from noetl.bootstrap.remote_worker import run_worker
from noetl.bootstrap.settings import Settings
settings = Settings(home=sys.argv[2], internal_key=sys.argv[3])
asyncio.run(run_worker(settings, sys.argv[1], 4))
"""
SECRETIVE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: secretive, path: tests/secretive}
workflow:
  - step: start
    tool:
      kind: python
      auth: bank
      code: |
        def main(rows):
            return list(range(rows))
      args: {rows: 50000}
    next: [{step: child}]
  - step: child
    tool: {kind: playbook, path: tests/hello}
"""
SLOW = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: slow, path: tests/slow}
workflow:
  - step: start
    tool: {kind: shell, command: "sleep 0.5"}
"""


@asynccontextmanager
async def remote_worker(api: Api, home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, api.address, str(home), KEY
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_remote_worker_runs_playbooks_with_what_the_server_has(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = Settings(home=str(home), internal_key=KEY)
    async with (
        running_api(settings, has_worker=False) as api,
        remote_worker(api, home) as process,
    ):
        await api.post("/api/catalog/register", content=HELLO)
        await api.post("/api/credentials", name="bank", type="bearer", data={"token": "t"})
        execution = await api.start(SECRETIVE)
        shown = await api.ended(execution)
        assert shown["status"] == "COMPLETED", msgspec.json.encode(shown)

        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
        assert (await api.get("/api/workers"))["workers"] == []


async def test_a_worker_that_is_told_to_stop_finishes_what_it_has(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = Settings(home=str(home), internal_key=KEY)
    async with (
        running_api(settings, has_worker=False) as api,
        remote_worker(api, home) as process,
    ):
        execution = await api.start(SLOW)
        async with api.session.get(f"/api/executions/{execution}/stream") as response:
            while b"command.started" not in await response.content.readany():
                pass
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0

        assert (await api.get(f"/api/executions/{execution}"))["status"] == "COMPLETED"
