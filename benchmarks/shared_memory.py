"""`shm.read.100mb`: a table of 100 MB from each place where it may lie; `shm.hit_ratio` beside it.

A read opens the table and sums one of its two columns, so half of the pages are touched. Every
read maps anew, as a process that has not seen the table would. The limit is a bare map of the same
bytes in a file that the page cache holds: shared memory cannot be quicker than that.
"""

import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from pyarrow import compute, ipc

from benchmarks import shared_memory_hits
from benchmarks.measurement import Measurement, median
from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.cache.shared_memory import (
    FOLDER,
    SharedMemoryOptions,
    SharedMemoryResultCache,
)
from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.adapters.objectstore.connect import open_store
from noetl.adapters.system.clock import utc_now
from noetl.kernel.instant import plus
from noetl.ports.object_store import ObjectStore
from noetl.ports.result_cache import CacheKey, Offering, ResultCache
from noetl.results.read_chain import ReadChain
from noetl.servers.seaweedfs import SeaweedS3Server

ROWS = 6_250_000
ROUNDS = 15
SLOW_ROUNDS = 3
NAME = "results/table.feather"

Read = Callable[[], Awaitable[None]]


def table_bytes() -> bytes:
    numbers = pa.array(range(ROWS), pa.int64())
    table = pa.table({"number": numbers, "double": compute.multiply(numbers, 2)})
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)
    return bytes(sink.getvalue())


def scan(source: object) -> None:
    table = ipc.open_file(source).read_all()
    found = compute.sum(table.column("number")).as_py()
    if found != ROWS * (ROWS - 1) // 2:
        raise AssertionError(f"the column sums up to {found}")


class Places:
    """One table in every place, and how to read it from there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = table_bytes()
        self.key = CacheKey(
            tenant_id="bench",
            organization_id="bench",
            execution_id="1",
            sha256=hashlib.sha256(self.data).hexdigest(),
            byte_length=len(self.data),
        )
        self.offering = Offering(
            view=memoryview(self.data), lease_expires_at=plus(utc_now(), seconds=600)
        )

    def through(self, layers: list[ResultCache], store: ObjectStore) -> Read:
        chain = ReadChain(layers, store, self.folder / "scratch")

        async def read() -> None:
            found = await chain.read(self.key, NAME)
            scan(pa.BufferReader(found.view))

        return read

    def bare(self) -> Read:
        path = self.folder / "bare"
        path.write_bytes(self.data)

        async def read() -> None:
            with pa.memory_map(str(path)) as file:
                scan(file)

        return read


async def timed_ms(read: Read) -> float:
    started = time.perf_counter()
    await read()
    return (time.perf_counter() - started) * 1000


def bucket(server: SeaweedS3Server) -> ObjectStore:
    server.create_bucket("results")
    config = {
        "endpoint": server.endpoint,
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
        "region": server.region,
    }
    return open_store("s3://results", config, allow_http=True)


async def measured(places: Places, s3: ObjectStore) -> Measurement:
    options = SharedMemoryOptions(home_id=f"bench{os.getpid()}", node_id="bench")
    shared = SharedMemoryResultCache(options, utc_now)
    disk = DiskResultCache(places.folder / "disk", utc_now)
    local = FilesystemObjectStore(places.folder / "local")
    for store in (s3, local):
        await store.create(NAME, places.data)
    started = time.perf_counter()
    if not shared.offer(places.key, places.offering):
        raise AssertionError(f"shared memory refused: {shared.stats().refusals}")
    share_ms = (time.perf_counter() - started) * 1000
    if not disk.offer(places.key, places.offering):
        raise AssertionError(f"the disk refused: {disk.stats().refusals}")

    reads = {
        "bare": places.bare(),
        "shared_memory": places.through([shared], s3),
        "disk": places.through([disk], s3),
        "local_store": places.through([], local),
        "seaweedfs": places.through([], s3),
    }
    first_local_ms = await timed_ms(reads["local_store"])
    quick = [name for name in reads if name != "seaweedfs"]
    times: dict[str, list[float]] = {name: [] for name in reads}
    for _ in range(ROUNDS):
        for name in quick:
            times[name].append(await timed_ms(reads[name]))
    for _ in range(SLOW_ROUNDS):
        times["seaweedfs"].append(await timed_ms(reads["seaweedfs"]))
    middle = {name: median(found) for name, found in times.items()}
    shm_ms = middle["shared_memory"]
    others = [name for name in reads if name not in ("bare", "shared_memory")]
    return Measurement(
        name="shm.read.100mb",
        value=shm_ms,
        unit="ms",
        limit=middle["bare"],
        limit_name="bare map of a file in the page cache, same scan",
        detail={
            "bytes": len(places.data),
            **{f"{name}_ms": round(middle[name], 2) for name in others},
            **{f"{name}_to_shared_memory": round(middle[name] / shm_ms, 2) for name in others},
            "local_store_first_ms": round(first_local_ms, 2),  # with its digest
            "share_ms": round(share_ms, 2),
        },
    )


async def read_100mb() -> AsyncIterator[Measurement]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noetl-bench-")))
        server = stack.enter_context(SeaweedS3Server(folder / "seaweedfs"))
        try:
            yield await measured(await asyncio.to_thread(Places, folder), bucket(server))
        finally:
            for region in FOLDER.glob(f"noetl-bench{os.getpid()}*"):
                region.unlink()


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "shm.read.100mb": read_100mb,
    **shared_memory_hits.BENCHMARKS,
}
