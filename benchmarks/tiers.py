"""`tier.500mb.local`, `tier.500mb.s3`, `tier.15mb_json`: large results from step to step.

A playbook makes a table in a python step, sums it up in a duckdb step and again in a python step
that takes Arrow. It runs on the embedded engine in a process of its own, whose private memory is
sampled: what it maps is the page cache's. The limit is a bare copy of the same bytes to the same
store, and back.
"""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from benchmarks.measurement import ROOT, Measurement
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.ports.object_store import ObjectStore
from noetl.results.table_file import chunks_of
from noetl.runtime.starting import StartRequest
from noetl.servers.seaweedfs import SeaweedS3Server

END_SECONDS = 600
SAMPLE_SECONDS = 0.01
MEMORY_MB_MAX = 128.0
"""Twice what a part of a result may take: so much above its base a worker may have."""

ROWS = 10_000_000  # of 50 bytes and more
PART_OF_ROWS = 3_500_000  # still more bytes than a worker may keep
FEW_ROWS = 200_000
TEXTS = 150_000  # of 100 bytes

_HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {0}, path: bench/{0}}}\n"

TABLE = """
workflow:
  - step: make
    tool:
      kind: python
      code: |
        import pyarrow as pa
        import pyarrow.compute as pc
        def batches():
            for start in range(0, %(rows)d, 100_000):
                ids = pa.array(range(start, start + 100_000), pa.int64())
                text = pc.binary_join_element_wise(ids.cast(pa.string()), "x" * 24, "-")
                yield pa.record_batch({"id": ids, "text": text, "half": pc.divide(ids, 2)})
        result = batches()
    next: count
  - step: count
    tool:
      kind: duckdb
      database: ":memory:"
      tables: {made: "{{ make }}"}
      query: SELECT count(*) AS n, sum(id)::BIGINT AS total FROM made
    next: arrow
  - step: arrow
    tool:
      kind: python
      tables: arrow
      input: {rows: "{{ make }}", expected: "{{ count.rows[0] }}"}
      code: |
        import pyarrow.compute as pc
        found = {"n": rows.num_rows, "total": pc.sum(rows["id"]).as_py()}
        assert found == expected, (found, expected)
        result = found
"""
JSON = """
workflow:
  - step: make
    tool:
      kind: python
      code: |
        result = {"groups": {str(i): ["x" * 100] * 10 for i in range(%(rows)d // 10)}}
    next: use
  - step: use
    tool:
      kind: python
      input: {given: "{{ make }}"}
      code: "result = sum(map(len, given['groups'].values()))"
"""
TEXT = {
    "table": _HEAD.format("table") + TABLE % {"rows": ROWS},
    "part": _HEAD.format("part") + TABLE % {"rows": PART_OF_ROWS},
    "few": _HEAD.format("few") + TABLE % {"rows": FEW_ROWS},
    "json": _HEAD.format("json") + JSON % {"rows": TEXTS},
    "short": _HEAD.format("short") + JSON % {"rows": 2_000},
}


class Outcome(msgspec.Struct):
    """What the process that ran the playbook says of itself."""

    seconds: float
    bare_seconds: float
    mbytes: float
    base_mb: float
    peak_mb: float

    @property
    def above_base_mb(self) -> float:
        return self.peak_mb - self.base_mb


def private_mb() -> float:
    """Memory of this process that is no mapped file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the kernel does not say RssAnon")


class Peak:
    def __init__(self) -> None:
        self.base_mb = self.peak_mb = private_mb()

    @contextmanager
    def watched(self) -> Iterator[None]:
        over = threading.Event()

        def watch() -> None:
            while not over.wait(SAMPLE_SECONDS):
                self.peak_mb = max(self.peak_mb, private_mb())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


async def run(engine: Engine, path: str) -> float:
    """Seconds from asking to the end."""
    started = time.perf_counter()
    request = StartRequest(scope=engine.settings.scope, path=f"bench/{path}")
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, END_SECONDS)
    if ending is None or ending.status != "COMPLETED":
        raise AssertionError(ending)
    return time.perf_counter() - started


async def measure(playbook: str, settings: Settings, folder: Path) -> Outcome:
    """Runs in the child."""
    async with open_engine(settings) as engine:
        for text in TEXT.values():
            await engine.playbooks.register(engine.settings.scope, text)
        # Imports, pools and first looks at files are not what is measured.
        await run(engine, "short" if playbook == "json" else "few")
        gc.collect()
        peak = Peak()
        with peak.watched():
            seconds = await run(engine, playbook)
        objects = engine.platform.results.objects
        largest = await _largest(objects, folder / "copy")
        bare_seconds = await _copied(objects, folder / "copy")
    return Outcome(
        seconds=seconds,
        bare_seconds=bare_seconds,
        mbytes=largest / 1e6,
        base_mb=peak.base_mb,
        peak_mb=peak.peak_mb,
    )


async def _largest(objects: ObjectStore, target: Path) -> int:
    """The bytes that were moved, as a file for the bare copy."""
    found = max(await objects.list_objects(""), key=lambda facts: facts.byte_length)
    with target.open("wb") as file:
        async for chunk in objects.read(found.key):
            file.write(chunk)
    return found.byte_length


async def _copied(objects: ObjectStore, source: Path) -> float:
    started = time.perf_counter()
    await objects.create("bare/copy", chunks_of(source))
    async for _ in objects.read("bare/copy"):
        pass
    return time.perf_counter() - started


def in_a_process(playbook: str, home: Path, url: str, environment: dict[str, str]) -> Outcome:
    command = [sys.executable, "-m", "benchmarks.tiers", playbook, str(home), url]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, **environment}, check=True
    )
    return msgspec.json.decode(done.stdout, type=Outcome)


def measured(name: str, outcome: Outcome) -> Measurement:
    above = outcome.above_base_mb
    if above > MEMORY_MB_MAX:
        print(f"{name}: {above:.0f} MB above the base, {MEMORY_MB_MAX} allowed", file=sys.stderr)
    return Measurement(
        name=name,
        value=outcome.mbytes / outcome.seconds,
        unit="MB/s",
        limit=outcome.mbytes / outcome.bare_seconds,
        limit_name="bare copy to the same store and back",
        detail={
            "seconds": round(outcome.seconds, 3),
            "bare_seconds": round(outcome.bare_seconds, 3),
            "mbytes": round(outcome.mbytes, 1),
            "base_mb": round(outcome.base_mb, 1),
            "peak_above_base_mb": round(above, 1),
            "peak_above_base_mb_max": MEMORY_MB_MAX,
        },
    )


async def _through_files(name: str, playbook: str) -> AsyncIterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        work = asyncio.to_thread(in_a_process, playbook, Path(folder), "file:", {})
        yield measured(name, await work)


async def through_a_bucket() -> AsyncIterator[Measurement]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noetl-bench-")))
        server = stack.enter_context(SeaweedS3Server(folder / "seaweedfs"))
        server.create_bucket("results")
        options = urlencode({"endpoint": server.endpoint, "region": server.region})
        keys = {
            "AWS_ACCESS_KEY_ID": server.access_key,
            "AWS_SECRET_ACCESS_KEY": server.secret_key,
        }
        url = f"s3://results?{options}"
        outcome = await asyncio.to_thread(in_a_process, "table", folder / "run", url, keys)
        yield measured("tier.500mb.s3", outcome)


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "tier.500mb.local": lambda: _through_files("tier.500mb.local", "table"),
    "tier.500mb.s3": through_a_bucket,
    "tier.15mb_json": lambda: _through_files("tier.15mb_json", "json"),
}


async def main(playbook: str, home: str, url: str) -> None:
    folder = Path(home)
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    settings = Settings(home=f"{home}/home", payload_url=url)
    outcome = await measure(playbook, settings, folder)
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
