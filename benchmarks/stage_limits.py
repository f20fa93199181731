"""What stages stand beside: the same requests and the same work without us.

    python -m benchmarks.stage_limits plain-spark ROWS

One asyncio client with one session for stages that wait, a plain `mapInArrow` for those that
compute, a warm job of one Python task for the latency of a stage, and for a loop that does nothing
a coroutine that does nothing, with its answers in as many files.
"""

import asyncio
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from benchmarks.measurement import median
from benchmarks.process_tree import tree_cpu_seconds
from noetl.bootstrap.settings import Settings
from noetl.bootstrap.spark import java_for_spark
from noetl.spark.session import SparkSettings, open_session, write_settings

SPARK_MASTER = "local[2,4]"
JOBS = 5
TRIES = 2  # the better one counts, here and in the runs that are compared
WORK_STEPS = 4_000

WORK = f"""
def work(number):
    total = number
    for step in range({WORK_STEPS}):
        total = (total * 31 + step) % 1000003
    return total
"""
"""The same text in a playbook and in a plain job."""


async def requests(url: str, count: int, at_once: int) -> tuple[float, float]:
    """Wall and processor seconds of a bare client that reads and decodes every answer."""
    numbers = iter(range(1, count + 1))
    started, cpu = time.perf_counter(), time.process_time()
    connector = aiohttp.TCPConnector(limit=at_once)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            for number in numbers:
                async with session.get(f"{url}/patients/{number}/assessments") as response:
                    msgspec.json.decode(await response.read())

        await asyncio.gather(*(ask() for _ in range(at_once)))
    return time.perf_counter() - started, time.process_time() - cpu


async def kept_items(count: int, files: int, folder: Path) -> None:
    """An answer for each number, awaited; those of a file are on the disk when the next begins."""

    async def nothing(number: int) -> dict[str, int | None]:
        return {"index": number, "value": None}

    step = -(-count // files)
    for begin in range(0, count, step):
        answers = [await nothing(number) for number in range(begin, min(begin + step, count))]
        content = msgspec.json.encode(answers)
        path = folder / hashlib.sha256(content).hexdigest()
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


class PlainSpark(msgspec.Struct):
    """A process of its own says this of itself."""

    seconds: float
    cpu_seconds: float
    job_ms: float
    job_cpu_seconds: float


def plain_spark(rows: int) -> PlainSpark:
    """On a warm session with the settings of ours."""
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        settings = SparkSettings(master=SPARK_MASTER)
        write_settings(settings, Path(folder))
        os.environ |= {"SPARK_CONF_DIR": f"{folder}/conf", "PYSPARK_PYTHON": sys.executable}
        os.environ["JAVA_HOME"] = str(java_for_spark(Settings(home=folder)).home)
        session = open_session(settings, ())
        _computed(session, 2)
        _computed(session, 2)
        each = [_timed(session, 1) for _ in range(JOBS)]
        seconds, cpu_seconds = min(_timed(session, rows) for _ in range(TRIES))
        session.stop()
    job_seconds, job_cpu = (median([pair[at] for pair in each]) for at in (0, 1))
    return PlainSpark(seconds, cpu_seconds, job_seconds * 1_000, job_cpu)


def _timed(session: Any, rows: int) -> tuple[float, float]:
    started, cpu = time.perf_counter(), tree_cpu_seconds()
    _computed(session, rows)
    return time.perf_counter() - started, tree_cpu_seconds() - cpu


def _computed(session: Any, rows: int) -> None:
    text = WORK

    def compute(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow  # noqa: PLC0415 - in Spark's worker

        names: dict[str, Any] = {}
        exec(text, names)
        for batch in batches:
            values = [names["work"](number) for number in batch.column(0).to_pylist()]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(values)], names=["value"])

    parts = min(rows, 2)
    found = session.range(0, rows, 1, parts).mapInArrow(compute, "value long").toArrow()
    assert found.num_rows == rows


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(plain_spark(int(sys.argv[2]))))
