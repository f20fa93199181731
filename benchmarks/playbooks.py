"""`chain.40`, `step.latency`, `executions.concurrent`, `loop.100k`, `backedge.10k`.

Playbooks on the embedded engine: SQLite with full sync, worker and projector in the same process.
Beside each stands the limit: the same events, in the same appends, group-committed to an empty log
and nothing else. Each runs in a process of its own, so that the peak memory is its own.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.measurement import ROOT, Measurement, median
from benchmarks.replay import peak_memory_mb
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.log import Append, SealedEvent
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import EventLog
from noetl.runtime.group_commit import GroupCommit
from noetl.runtime.starting import StartRequest
from noetl.wire.codec import open_stored

STEPS = 40
CHAINS = 10
LATENCY_RUNS = 200
EXECUTIONS = 1_000
ITEMS = 100_000
VISITS = 10_000
END_SECONDS = 600

_HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {0}, path: bench/{0}}}\n"


def chain_text() -> str:
    steps = [f"  - {{step: s{at}, tool: {{kind: noop}}, next: s{at + 1}}}" for at in range(STEPS)]
    steps[-1] = f"  - {{step: s{STEPS - 1}, tool: {{kind: noop}}}}"
    return _HEAD.format("chain") + "workflow:\n" + "\n".join(steps)


ONE_STEP = _HEAD.format("one") + "workflow: [{step: start, tool: {kind: noop}}]"
LOOP = (
    _HEAD.format("loop")
    + f"""
workflow:
  - step: numbers
    tool: {{kind: python, code: "result = list(range({ITEMS}))"}}
    next: each
  - step: each
    loop: {{in: "{{{{ numbers }}}}", iterator: n, spec: {{mode: parallel}}}}
    tool: {{kind: noop}}
"""
)
BACK_EDGE = (
    _HEAD.format("back")
    + f"""
workflow:
  - {{step: start, set: {{ctx.page: 1}}, next: fetch}}
  - step: fetch
    tool: {{kind: noop}}
    next:
      arcs:
        - step: fetch
          when: "{{{{ ctx.page < {VISITS} }}}}"
          set: {{ctx.page: "{{{{ ctx.page + 1 }}}}"}}
"""
)


class Outcome(msgspec.Struct):
    """What the process that ran the playbooks says of itself."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    base_mb: float
    events: int
    bare_seconds: float
    latency_ms: float = 0.0
    latency_p99_ms: float = 0.0


class Appends:
    """Where one append ended and the next began: the bare log gets the same ones."""

    def __init__(self) -> None:
        self.sizes: dict[ExecutionId, list[int]] = {}

    def __call__(self, execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
        self.sizes.setdefault(execution, []).append(len(events))


async def run(engine: Engine, path: str) -> float:
    """Seconds from asking to the end."""
    started = time.perf_counter()
    request = StartRequest(scope=engine.settings.scope, path=f"bench/{path}")
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, END_SECONDS)
    if ending is None or ending.status != "COMPLETED":
        raise AssertionError(ending)
    return time.perf_counter() - started


async def chains(engine: Engine) -> list[float]:
    return [await run(engine, "chain") for _ in range(CHAINS)]


async def latencies(engine: Engine) -> list[float]:
    return [await run(engine, "one") for _ in range(LATENCY_RUNS)]


async def concurrent(engine: Engine) -> list[float]:
    return list(await asyncio.gather(*(run(engine, "one") for _ in range(EXECUTIONS))))


async def loop(engine: Engine) -> list[float]:
    return [await run(engine, "loop")]


async def back_edge(engine: Engine) -> list[float]:
    return [await run(engine, "back")]


WORK: dict[str, Callable[[Engine], Awaitable[list[float]]]] = {
    "chain.40": chains,
    "step.latency": latencies,
    "executions.concurrent": concurrent,
    "loop.100k": loop,
    "backedge.10k": back_edge,
}


async def measure(name: str) -> Outcome:
    """Runs in the child."""
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        appends = Appends()
        async with open_engine(Settings(home=f"{folder}/home")) as engine:
            for text in (chain_text(), ONE_STEP, LOOP, BACK_EDGE):
                await engine.playbooks.register(engine.settings.scope, text)
            await run(engine, "one")  # imports and first looks at tables are not what is measured
            engine.coordinator.listeners.append(appends)
            base_mb, started, cpu = peak_memory_mb(), time.perf_counter(), time.process_time()
            each = await WORK[name](engine)
            seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
            peak_mb = peak_memory_mb()
            bare_seconds = await append_bare(engine.platform.log, appends, Path(folder))
    return Outcome(
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        peak_mb=peak_mb,
        base_mb=base_mb,
        events=sum(map(sum, appends.sizes.values())),
        bare_seconds=bare_seconds,
        latency_ms=median(each) * 1_000,
        latency_p99_ms=sorted(each)[int(len(each) * 0.99)] * 1_000,
    )


async def append_bare(log: EventLog, appends: Appends, folder: Path) -> float:
    """The same appends to an empty log: one after the other within an execution."""
    groups = [await _read(log, execution, sizes) for execution, sizes in appends.sizes.items()]
    file = SqliteFile(folder / "bare.db")
    commit = GroupCommit(await SqliteEventLog.open(file, utc_now))
    is_concurrent = len(groups) >= EXECUTIONS
    started = time.perf_counter()
    if is_concurrent:
        await asyncio.gather(*(_append_all(commit, group) for group in groups))
    else:
        for group in groups:
            await _append_all(commit, group)
    seconds = time.perf_counter() - started
    await file.close()
    return seconds


async def _append_all(commit: GroupCommit, appends: list[Append]) -> None:
    for append in appends:
        await commit.append(append)


async def _read(log: EventLog, execution: ExecutionId, sizes: list[int]) -> list[Append]:
    appends: list[Append] = []
    version = 0
    for size in sizes:
        page = await log.read(execution, after_version=version, limit=size)
        opened = [open_stored(stored, verify=False) for stored in page]
        sealed = tuple(
            SealedEvent(recorded.envelope, recorded.event, stored.canonical, stored.checksum)
            for recorded, stored in zip(opened, page, strict=True)
        )
        appends.append(Append(sealed[0].envelope.scope, execution, version, sealed))
        version += size
    return appends


def in_a_process(name: str) -> Outcome:
    command = [sys.executable, "-m", "benchmarks.playbooks", name]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Outcome)


def detail_of(outcome: Outcome) -> dict[str, float | str]:
    return {
        "seconds": round(outcome.seconds, 3),
        "cpu_seconds": round(outcome.cpu_seconds, 3),
        "events": outcome.events,
        "bare_seconds": round(outcome.bare_seconds, 3),
        "peak_mb": round(outcome.peak_mb, 1),
        "peak_above_start_mb": round(outcome.peak_mb - outcome.base_mb, 1),
    }


async def chain_40() -> AsyncIterator[Measurement]:
    outcome = in_a_process("chain.40")
    steps = STEPS * CHAINS
    yield Measurement(
        name="chain.40",
        value=outcome.seconds / steps * 1_000,
        unit="ms/step",
        limit=outcome.bare_seconds / steps * 1_000,
        limit_name="bare appends of the same events",
        detail=detail_of(outcome),
    )


async def step_latency() -> AsyncIterator[Measurement]:
    outcome = in_a_process("step.latency")
    yield Measurement(
        name="step.latency",
        value=outcome.latency_ms,
        unit="ms",
        limit=outcome.bare_seconds / LATENCY_RUNS * 1_000,
        limit_name="bare appends of the same events",
        detail={**detail_of(outcome), "p99_ms": round(outcome.latency_p99_ms, 2)},
    )


async def _rate(name: str, things: int, unit: str) -> AsyncIterator[Measurement]:
    outcome = in_a_process(name)
    yield Measurement(
        name=name,
        value=things / outcome.seconds,
        unit=unit,
        limit=things / outcome.bare_seconds,
        limit_name="bare appends of the same events",
        detail=detail_of(outcome),
    )


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "chain.40": chain_40,
    "step.latency": step_latency,
    "executions.concurrent": lambda: _rate("executions.concurrent", EXECUTIONS, "executions/s"),
    "loop.100k": lambda: _rate("loop.100k", ITEMS, "items/s"),
    "backedge.10k": lambda: _rate("backedge.10k", VISITS, "visits/s"),
}


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(measure(sys.argv[1]))))
