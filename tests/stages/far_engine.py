"""An engine whose slots run elsewhere: they come to it by the address that it was told to have."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.serving import listening
from noetl.bootstrap.settings import Settings
from noetl.servers.process import LOOPBACK, free_ports
from tests.stages.killed_stage import LEASE_SECONDS, SLOTS


@asynccontextmanager
async def far_engine(
    home: Path, master: str, conf: Mapping[str, str] | None = None, payload_url: str = "file:"
) -> AsyncIterator[Engine]:
    [port] = free_ports(1)
    settings = Settings(
        home=str(home),
        payload_url=payload_url,
        stage_engine="spark",
        spark_master=master,
        spark_slots=SLOTS,
        spark_memory_mb=512,
        spark_conf=";".join(f"{name}={value}" for name, value in (conf or {}).items()),
        public_url=f"http://{LOOPBACK}:{port}",
        lease_seconds=LEASE_SECONDS,
    )
    async with open_engine(settings) as engine, listening(engine, LOOPBACK, port):
        yield engine
