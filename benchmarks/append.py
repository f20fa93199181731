"""`append.<engine>.<batch>`: the log's append against the bare engine and a bare synced file.

All write the same events with the same durability, one commit per batch, in turns. The port's
share includes sealing: the envelope, its canonical bytes, their validation and their checksum.
"""

import gc
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from benchmarks.engines import (
    BareFile,
    LeanPostgres,
    LeanSqlite,
    RawEngine,
    SamePostgres,
    SameSqlite,
)
from benchmarks.measurement import Measurement, median
from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.domain.events.envelope import Draft
from noetl.domain.log import APPEND_EVENTS_MAX, EMPTY_STREAM, Append, Appended
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.kernel.snowflake import SnowflakeSequence
from noetl.ports.event_log import EventLog
from noetl.servers.postgres import PostgresServer
from noetl.testing.histories import START_MILLIS, History, command_cycle, source_of
from noetl.wire.codec import seal

ROUNDS = 5
BATCHES_PER_ROUND = {1: 300, 10: 200, 100: 60, 1000: 8}
CONTEXT = {"row_count": 12, "status_code": 200, "note": "x" * 400}

Stream = tuple[ExecutionId, list[Draft]]
Batch = list[Stream]


class Contestants(NamedTuple):
    log: EventLog
    engines: tuple[RawEngine, ...]


Arena = Callable[[], AbstractAsyncContextManager[Contestants]]


def batches(size: int, how_many: int, ids: SnowflakeSequence) -> list[Batch]:
    """Batches of `size` drafts; each is a stream of its own, or several when it is long."""
    starts = range(0, size, APPEND_EVENTS_MAX)
    return [
        [
            _stream(ExecutionId(ids.next(START_MILLIS)), min(APPEND_EVENTS_MAX, size - start))
            for start in starts
        ]
        for _ in range(how_many)
    ]


def _stream(execution: ExecutionId, length: int) -> Stream:
    history = History(execution)
    drafts: list[Draft] = []
    for visit in count(1):
        if len(drafts) >= length:
            break
        drafts += command_cycle(history, StepName("fetch"), visit, CONTEXT)
    return execution, drafts[:length]


def seal_batch(batch: Batch) -> list[Append]:
    return [
        Append(DEFAULT_SCOPE, execution, 0, seal(drafts, EMPTY_STREAM, source_of(execution)))
        for execution, drafts in batch
    ]


async def through_the_port(log: EventLog, round_: list[Batch]) -> float:
    started = time.perf_counter()
    for batch in round_:
        outcomes = await log.append(seal_batch(batch))
        if not all(isinstance(outcome, Appended) for outcome in outcomes):
            raise AssertionError(outcomes)
    return time.perf_counter() - started


async def through_the_engine(engine: RawEngine, round_: list[Batch]) -> float:
    prepared = [engine.prepare(seal_batch(batch)) for batch in round_]
    started = time.perf_counter()
    for batch in prepared:
        await engine.write(batch)
    return time.perf_counter() - started


async def measure(name: str, arena: Arena, size: int) -> AsyncIterator[Measurement]:
    ids = SnowflakeSequence(3)
    seconds: list[list[float]] = []
    async with arena() as contestants:
        for _ in range(ROUNDS + 1):
            round_ = batches(size, BATCHES_PER_ROUND[size], ids)
            gc.collect()
            gc.freeze()  # the prepared drafts are the caller's; no contestant walks through them
            times = [await through_the_port(contestants.log, round_)]
            times += [await through_the_engine(engine, round_) for engine in contestants.engines]
            seconds.append(times)
            gc.unfreeze()
    events = size * BATCHES_PER_ROUND[size]
    rates = [  # the first round warms up caches and plans
        events / median(column) for column in zip(*seconds[1:], strict=True)
    ]
    for engine, limit in zip(contestants.engines, rates[1:], strict=True):
        yield Measurement(
            name=f"append.{name}.{size}",
            value=rates[0],
            unit="events/s",
            limit=limit,
            limit_name=engine.name,
        )


@asynccontextmanager
async def sqlite_arena() -> AsyncIterator[Contestants]:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        file = SqliteFile(Path(folder) / "log.db")
        log = await SqliteEventLog.open(file, utc_now)
        engines = (
            SameSqlite(Path(folder) / "same.db"),
            LeanSqlite(Path(folder) / "lean.db"),
            BareFile(Path(folder) / "bare"),
        )
        yield Contestants(log, engines)
        for engine in engines:
            await engine.close()
        await file.close()


@asynccontextmanager
async def postgres_arena() -> AsyncIterator[Contestants]:
    with (
        tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder,
        PostgresServer(Path(folder) / "data") as server,
    ):
        log = await PostgresEventLog.open(server.create_database("log"), utc_now)
        engines = (
            await SamePostgres.connect(server.create_database("same")),
            await LeanPostgres.connect(server.create_database("lean")),
            BareFile(Path(folder) / "bare"),
        )
        yield Contestants(log, engines)
        for engine in engines:
            await engine.close()
        await log.close()


BENCHMARKS = {
    f"append.{name}.{size}": partial(measure, name, arena, size)
    for name, arena in (("sqlite", sqlite_arena), ("postgres", postgres_arena))
    for size in BATCHES_PER_ROUND
}
