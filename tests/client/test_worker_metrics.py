"""A worker shows its numbers on a port of its own."""

import asyncio
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from noetl.bootstrap.settings import Settings
from noetl.domain.naming.locator import Locality
from noetl.kernel.ids import ExecutionId
from noetl.runtime.placing import place_in
from noetl.wire.codec import open_stored
from tests.api.running import HELLO, running_api

pytestmark = pytest.mark.servers

PROGRAM = """
import asyncio, sys
from noetl.bootstrap.remote_worker import Named, run_worker
from noetl.bootstrap.settings import Settings
settings = Settings(home=sys.argv[2], worker_metrics_port=int(sys.argv[3]))
labels = {"pool": "small", "zone": "eu-a", "cluster": "blue"}
asyncio.run(run_worker(settings, sys.argv[1], 4, Named("w1", labels)))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_a_worker_shows_its_slots_and_what_became_of_its_work(tmp_path: Path) -> None:
    port = free_port()
    async with running_api(Settings(home=str(tmp_path)), has_worker=False) as api:
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, api.address, str(tmp_path), str(port)
        )
        execution = await api.start(HELLO)
        await api.ended(execution)
        log = await api.engine.platform.log.read(ExecutionId(execution))
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            async with session.get("/metrics") as response:
                told = await response.text()
            async with session.get("/health") as response:
                assert response.status == 200
        (shown,) = (await api.get("/api/workers"))["workers"]
        worker.terminate()
        assert await worker.wait() == 0

    cluster = 'cluster_id="blue"'
    named = 'runtime="python",worker_id="w1",worker_pool="small",zone="eu-a"'
    labels = f"{cluster},{named}"
    assert f"noetl_worker_up{{{labels}}} 1.0" in told
    assert f"noetl_worker_slots_capacity{{{labels}}} 4.0" in told
    assert f'noetl_worker_work_total{{{cluster},end="reported",{named}}} 2.0' in told
    assert (shown["worker_id"], shown["labels"]["pool"]) == ("w1", "small")
    places = [place_in(open_stored(stored).annotations) for stored in log]
    assert Locality(zone="eu-a", cluster="blue") in places, "claims say where the worker is"


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, "http://127.0.0.1:9", str(tmp_path), port),
            stderr=asyncio.subprocess.PIPE,
        )
        _, err = await worker.communicate()
    assert worker.returncode == 1
    assert f"NOETL_WORKER_METRICS_PORT is {port}" in err.decode()
