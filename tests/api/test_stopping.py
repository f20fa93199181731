"""A server process stops when it is told to, and leaves a home that the next one goes on with."""

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp

from noetl.bootstrap.home import Home
from tests.api.running import WAITING

PROGRAM = """
import asyncio, sys
from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.serving import serve
from noetl.bootstrap.settings import Settings

async def main():
    async with open_engine(Settings(home=sys.argv[1]), has_worker=False) as engine:
        await serve(engine, "127.0.0.1", 0, lambda address: print(address, flush=True))
    print("drained", flush=True)

asyncio.run(main())
"""


async def test_a_signal_ends_streams_drains_and_frees_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(home), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        async with aiohttp.ClientSession(address) as session:
            async with session.post("/api/catalog/register", json={"content": WAITING}) as answer:
                assert answer.status == 200
            async with session.post("/api/execute", json={"path": "tests/waiting"}) as answer:
                execution = (await answer.json())["execution_id"]
            async with session.get(f"/api/executions/{execution}/stream") as stream:
                await stream.content.readany()
                process.send_signal(signal.SIGTERM)
                await stream.read()
        rest, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert (process.returncode, rest) == (0, b"drained\n")
    assert not Home(home).is_held()
