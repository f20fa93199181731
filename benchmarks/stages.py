"""`loop.1k`, `loop.1m`, `stage.http`, `stage.cpu`, `stage.empty`: beside what they cost at best.

BENCH_ITEMS_MAX bounds the rows of `loop.1m`, which else takes minutes; BENCH_SECONDS_MAX, by
default 110, is what a stage may take. `loop.1k` is of local slots and of Spark. Processor seconds
and `peak_mb` are those of all processes together; `cpu_ratio` is what the same work takes without
us, by what it takes with us, and says more than the clock does on a machine that others use.
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from benchmarks.measurement import ROOT, Measurement, NoFigure
from benchmarks.stage_limits import PlainSpark, requests
from benchmarks.stage_runs import AT_ONCE, Run

ITEMS_MAX = int(os.environ.get("BENCH_ITEMS_MAX", "1000000"))
HTTP_ROWS = 4_000
HTTP_DELAY_MS = 5
CPU_ROWS = 10_000
PROCESS_SECONDS_MAX = float(os.environ.get("BENCH_SECONDS_MAX", "110"))
"""One that takes longer is stopped: most of the time it is a machine with other things to do."""

Told = TypeVar("Told")


def _in_a_process(kind: type[Told], module: str, *arguments: str | int) -> Told:
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    limit = None if module == "stage_runs" and arguments[0] == "loop" else PROCESS_SECONDS_MAX
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise NoFigure(f"{' '.join(command[2:])} has not ended within {limit:g} s") from None
    return msgspec.json.decode(done.stdout, type=kind)


@contextmanager
def _target() -> Iterator[str]:
    """The API of the examples, which answers faster than anybody asks."""
    command = [sys.executable, "examples/pft/api_server.py", "0", str(HTTP_DELAY_MS)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            server.terminate()


def _detail(run: Run, rows: int, bare_cpu: float | None = None) -> dict[str, float | str]:
    """`bare_cpu` is what the same rows take without us."""
    beside = {}
    if bare_cpu is not None:
        beside["bare_cpu_seconds"] = round(bare_cpu, 3)
        beside["cpu_ratio"] = round(bare_cpu / run.cpu_seconds, 3)
    return {
        "rows": rows,
        "seconds": round(run.seconds, 3),
        "cpu_seconds": round(run.cpu_seconds, 3),
        "peak_mb": round(run.peak_mb, 1),
        "spark_share": round(run.spark_share, 2),
        **beside,
    }


async def _loop_1k() -> AsyncIterator[Measurement]:
    yield _loop("loop.1k", "local", 1_000)
    yield _loop("loop.1k.spark", "spark", 1_000)


async def _loop_1m() -> AsyncIterator[Measurement]:
    yield _loop("loop.1m", "local", min(1_000_000, ITEMS_MAX))


def _loop(name: str, engine: str, rows: int) -> Measurement:
    run = _in_a_process(Run, "stage_runs", "loop", engine, rows)
    if run.spark_share != (engine == "spark"):
        raise NoFigure(f"{run.spark_share:.0%} of the frames of {name} were by Spark")
    return Measurement(
        name=name,
        value=rows / run.seconds,
        unit="items/s",
        limit=rows / run.bare_seconds,
        limit_name="bare appends of the same events, a coroutine for each item, as many files",
        detail={
            **_detail(run, rows, run.bare_cpu_seconds),
            "events": run.events,
            "frames": run.frames,
        },
    )


async def http() -> AsyncIterator[Measurement]:
    """The bare client runs before and after each: the machine may be another one by then."""
    with _target() as url:
        for engine in ("local", "spark"):
            before = await requests(url, HTTP_ROWS, AT_ONCE)
            run = await asyncio.to_thread(
                _in_a_process, Run, "stage_runs", "http", engine, HTTP_ROWS, url
            )
            # The better of two, as of ours.
            bare_seconds, bare_cpu = min(before, await requests(url, HTTP_ROWS, AT_ONCE))
            yield Measurement(
                name=f"stage.http.{engine}",
                value=HTTP_ROWS / run.seconds,
                unit="rows/s",
                limit=HTTP_ROWS / bare_seconds,
                limit_name="one bare client with as many requests at once",
                detail=_detail(run, HTTP_ROWS, bare_cpu),
            )


async def cpu() -> AsyncIterator[Measurement]:
    """The code has a frame of rows at a time, or each of them: a call, a name and a result more."""
    plain = _in_a_process(PlainSpark, "stage_limits", "plain-spark", CPU_ROWS)
    for process in ("frame", "row"):
        run = _in_a_process(Run, "stage_runs", "cpu", process, CPU_ROWS)
        yield Measurement(
            name=f"stage.cpu.{process}",
            value=CPU_ROWS / run.seconds,
            unit="rows/s",
            limit=CPU_ROWS / plain.seconds,
            limit_name="plain mapInArrow",
            detail=_detail(run, CPU_ROWS, plain.cpu_seconds),
        )


async def empty() -> AsyncIterator[Measurement]:
    """Beside the latency of a job: the ratio is above one, and rises with what we add."""
    plain = _in_a_process(PlainSpark, "stage_limits", "plain-spark", 2)
    run = _in_a_process(Run, "stage_runs", "empty")
    yield Measurement(
        name="stage.empty",
        value=run.stage_ms,
        unit="ms",
        limit=plain.job_ms,
        limit_name="plain warm job of one Python task",
        detail={
            "execution_ms": round(run.execution_ms, 1),
            "cpu_seconds": round(run.cpu_seconds, 3),
            "bare_cpu_seconds": round(plain.job_cpu_seconds, 3),
        },
    )


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "loop.1k": _loop_1k,
    "loop.1m": _loop_1m,
    "stage.http": http,
    "stage.cpu": cpu,
    "stage.empty": empty,
}
