"""Every role that reads results counts what it reads, and only the server runs a materializer."""

import asyncio
import sys
from pathlib import Path

import aiohttp
import pytest

from noetl.bootstrap.settings import Settings
from noetl.runtime.materializer import CONSUMER
from noetl.servers.process import free_ports
from tests.api.running import Api, running_api
from tests.results.dev_server import TABLE

pytestmark = pytest.mark.servers

KEY = "for-workers-only"
PROGRAM = """
import asyncio, sys
from noetl.bootstrap.remote_worker import Named, run_worker
from noetl.bootstrap.settings import Settings
settings = Settings(
    home=sys.argv[2], internal_key=sys.argv[3], payload_url=sys.argv[4],
    worker_metrics_port=int(sys.argv[5]),
)
asyncio.run(run_worker(settings, sys.argv[1], 4, Named("w1", {"pool": "small"})))
"""


def numbers(text: str) -> dict[str, float]:
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {key: float(value) for key, value in pairs}


async def told_by_a_worker(api: Api, home: Path, payload_url: str) -> dict[str, float]:
    """The numbers of a worker that has run a step which reads the result of another."""
    [port] = free_ports(1)
    arguments = (api.address, str(home), KEY, payload_url, str(port))
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, *arguments)
    try:
        execution = await api.start(TABLE)
        shown = await api.ended(execution)
        assert shown["status"] == "COMPLETED", shown
        assert shown["result"] == {"rows": 2_000, "last": 1_999}
        uri = f"noetl://default/default/results/{execution}/start/0/0/1@1"
        assert len(await api.get("/api/result/resolve", ref=uri)) == 2_000
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
            session.get("/metrics") as response,
        ):
            return numbers(await response.text())
    finally:
        worker.terminate()
        assert await worker.wait() == 0


@pytest.mark.parametrize("payload_url", ["file:", "server:"])
async def test_a_worker_and_its_server_count_results_by_name(
    tmp_path: Path, payload_url: str
) -> None:
    home = tmp_path / "home"
    workers = home if payload_url == "file:" else tmp_path / "elsewhere"
    settings = Settings(home=str(home), internal_key=KEY)
    async with running_api(settings, has_worker=False) as api:
        told = await told_by_a_worker(api, workers, payload_url)
        server = numbers((await api.call("GET", "/metrics")).body)

    by = 'runtime="python",worker_id="w1",worker_pool="small"'
    assert told[f'noetl_result_staged_total{{encoding="feather",{by}}}'] == 1
    resolved = f'noetl_result_resolve_total{{outcome="resolved_feather",path="tier",{by}}}'
    assert told[resolved] > 0
    assert told[f"noetl_storage_ipc_admission_success_total{{{by}}}"] == 1
    assert told[f'noetl_result_reads_total{{layer="shared_memory",{by}}}'] > 0
    assert told[f"noetl_storage_ipc_read_hit_ratio{{{by}}}"] > 0.6
    assert server['noetl_result_resolve_total{outcome="resolved_feather",path="tier"}'] > 0
    assert server['noetl_result_uri_accept_total{outcome="canonical"}'] == 1
    assert "noetl_result_materializer_lag_events" in server  # how many, the next test says
    assert not [name for name in told if "materializer" in name or "uri_accept" in name]


async def test_the_server_follows_its_log_and_finds_everything(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    async with running_api(settings) as api:
        await api.ended(await api.start(TABLE))
        platform = api.engine.platform
        head = (await platform.log.tail(after_position=0))[-1].position
        while True:
            cursor = await platform.projections.cursor(CONSUMER)
            if cursor is not None and cursor.position >= head:
                break
            await asyncio.sleep(0.05)
        server = numbers((await api.call("GET", "/metrics")).body)
    assert server['noetl_result_materializer_total{outcome="present"}'] == 1
    assert server['noetl_result_materializer_total{outcome="missing"}'] == 0
    assert server["noetl_result_materializer_lag_events"] == 0
