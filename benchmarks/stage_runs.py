"""Loops on an engine of their own, each run of one in a process that measures itself.

python -m benchmarks.stage_runs loop ENGINE ROWS | http ENGINE ROWS URL | cpu PROCESS ROWS | empty
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from benchmarks.measurement import median
from benchmarks.playbooks import Appends, append_bare
from benchmarks.process_tree import tree_cpu_seconds, tree_peak_mb
from benchmarks.stage_limits import SPARK_MASTER, TRIES, WORK, kept_items
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.events import FrameDispatched, StageClosed, StageOpened
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import seconds_between
from noetl.runtime.starting import StartRequest
from noetl.wire.codec import open_stored

END_SECONDS = 900
AT_ONCE = 32
ROWS_AT_ONCE = 8  # of a frame, so that every slot has two: one runs while the other is reported
STAGES = 7
FRAME_ROWS = 250
CPU_FRAME_ROWS = 1_000
WARM_ROWS = 2_000
EVENTS_MAX = 5_000

_HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: stage, path: bench/stage}\n"
TRIVIAL = """
workflow:
  - step: numbers
    tool: {kind: python, code: "result = list(range(ROWS))"}
    next: each
  - step: each
    loop: {in: "{{ numbers }}", iterator: n, engine: ENGINE, spec: {mode: parallel}}
    tool: {kind: noop}
"""
REQUESTS = f"""
workflow:
  - step: each
    loop:
      in: "{{{{ range(1, ROWS + 1) | list }}}}"
      iterator: n
      engine: ENGINE
      spec:
        mode: parallel
        max_in_flight: {AT_ONCE}
        frame: {{max_rows: {FRAME_ROWS}, row_concurrency: {ROWS_AT_ONCE}}}
    tool: {{kind: http, url: "URL/patients/{{{{ n }}}}/assessments"}}
"""
COMPUTED = f"""
workflow:
  - step: each
    loop:
      in: "{{{{ range(1, ROWS + 1) | list }}}}"
      iterator: n
      engine: spark
      spec: {{mode: parallel, frame: {{max_rows: {CPU_FRAME_ROWS}, process: PROCESS}}}}
    tool:
      kind: python
      code: |
{WORK.replace(chr(10), chr(10) + " " * 8)}
        result = RESULT
"""
COMPUTED_BY: dict[str, str] = {
    "frame": "[work(number) for number in n]",
    "row": "work(n)",
}
"""What one run of the code gets: a frame of numbers, or one of them."""


def _computed(process: str) -> str:
    return COMPUTED.replace("PROCESS", process).replace("RESULT", COMPUTED_BY[process])


class Run(msgspec.Struct):
    """`events`, `frames` and what is bare only of a loop that does nothing."""

    seconds: float
    cpu_seconds: float
    peak_mb: float = 0.0
    events: int = 0
    frames: int = 0
    bare_seconds: float = 0.0
    bare_cpu_seconds: float = 0.0
    stage_ms: float = 0.0
    execution_ms: float = 0.0
    spark_share: float = 0.0  # of the frames


@asynccontextmanager
async def _engine(folder: str, *, has_worker: bool) -> AsyncIterator[Engine]:
    """Without slots of its own where all steps are loops on Spark."""
    settings = Settings(home=f"{folder}/home", spark_master=SPARK_MASTER)
    async with open_engine(settings, has_worker=has_worker) as engine:
        yield engine


async def _register(engine: Engine, step: str, rows: int) -> None:
    text = (_HEAD + step).replace("ROWS", str(rows))
    await engine.playbooks.register(engine.settings.scope, text)


async def _run(engine: Engine) -> ExecutionId:
    request = StartRequest(scope=engine.settings.scope, path="bench/stage")
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, END_SECONDS)
    if ending is None or ending.status != "COMPLETED":
        raise AssertionError(ending)
    return execution


async def _timed(engine: Engine, step: str, rows: int) -> Run:
    """The better of two, after one with a frame for each slot, which pays for what is made once."""
    await _register(engine, step, WARM_ROWS)
    await _run(engine)
    await _register(engine, step, rows)
    return min([await _timed_once(engine) for _ in range(TRIES)], key=lambda run: run.seconds)


async def _timed_once(engine: Engine) -> Run:
    started, cpu = time.perf_counter(), tree_cpu_seconds()
    execution = await _run(engine)
    run = Run(time.perf_counter() - started, tree_cpu_seconds() - cpu, tree_peak_mb())
    run.spark_share = await _spark_share(engine, execution)
    return run


async def trivial(name: str, rows: int) -> Run:
    step = TRIVIAL.replace("ENGINE", name)
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        appends = Appends()
        async with _engine(folder, has_worker=True) as engine:
            await _register(engine, step, AT_ONCE)
            await _run(engine)
            await _register(engine, step, rows)
            engine.coordinator.listeners.append(appends)
            started, cpu = time.perf_counter(), tree_cpu_seconds()
            execution = await _run(engine)
            run = Run(time.perf_counter() - started, tree_cpu_seconds() - cpu, tree_peak_mb())
            run.events = sum(map(sum, appends.sizes.values()))
            run.frames = len(await _dispatched(engine, execution))
            run.spark_share = await _spark_share(engine, execution)
            await _beside(run, rows, engine, appends)
    return run


async def _beside(run: Run, rows: int, engine: Engine, appends: Appends) -> None:
    """The same events in the same appends, and an answer to each item in as many files."""
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        started, cpu = time.perf_counter(), time.process_time()
        await kept_items(rows, run.frames, Path(folder))
        items_seconds, items_cpu = time.perf_counter() - started, time.process_time() - cpu
        cpu = time.process_time()
        run.bare_seconds = items_seconds + await append_bare(
            engine.platform.log, appends, Path(folder)
        )
        run.bare_cpu_seconds = items_cpu + time.process_time() - cpu


async def requested(name: str, rows: int, url: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        async with _engine(folder, has_worker=name == "local") as engine:
            step = REQUESTS.replace("ENGINE", name).replace("URL", url)
            return await _timed(engine, step, rows)


async def computed(process: str, rows: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        async with _engine(folder, has_worker=False) as engine:
            return await _timed(engine, _computed(process), rows)


async def idle() -> Run:
    """Stages that have next to nothing to do, on a warm session."""
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        async with _engine(folder, has_worker=False) as engine:
            await _register(engine, _computed("frame"), 1)
            for _ in range(2):
                await _run(engine)
            stages, executions, cpu = [], [], tree_cpu_seconds()
            for _ in range(STAGES):
                started = time.perf_counter()
                stages.append(await _stage_seconds(engine, await _run(engine)))
                executions.append(time.perf_counter() - started)
            run = Run(median(stages), (tree_cpu_seconds() - cpu) / STAGES)
    run.stage_ms, run.execution_ms = median(stages) * 1_000, median(executions) * 1_000
    return run


async def _dispatched(engine: Engine, execution: ExecutionId) -> list[FrameDispatched]:
    page = await engine.platform.log.read(execution, after_version=0, limit=EVENTS_MAX)
    events = [open_stored(stored, verify=False).event for stored in page]
    return [each for each in events if isinstance(each, FrameDispatched)]


async def _spark_share(engine: Engine, execution: ExecutionId) -> float:
    frames = await _dispatched(engine, execution)
    return sum(each.worker_id.startswith("spark/") for each in frames) / len(frames)


async def _stage_seconds(engine: Engine, execution: ExecutionId) -> float:
    """From the event that opened it to the one that closed it."""
    opened = closed = None
    for stored in await engine.platform.log.read(execution, after_version=0, limit=EVENTS_MAX):
        recorded = open_stored(stored, verify=False)
        if isinstance(recorded.event, StageOpened):
            opened = recorded.envelope.event_time
        elif isinstance(recorded.event, StageClosed):
            closed = recorded.envelope.event_time
    assert opened is not None
    assert closed is not None
    return seconds_between(opened, closed)


async def _chosen(arguments: list[str]) -> Run:
    match arguments:
        case ["loop", engine, rows]:
            return await trivial(engine, int(rows))
        case ["http", engine, rows, url]:
            return await requested(engine, int(rows), url)
        case ["cpu", process, rows]:
            return await computed(process, int(rows))
        case ["empty"]:
            return await idle()
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_chosen(sys.argv[1:]))))
