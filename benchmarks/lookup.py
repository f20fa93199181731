"""`status.lookup`: one execution's status from the read model, among 100,000 of them.

The limit is a bare SELECT by primary key on the same file or server; the target is 10 ms at p99.
"""

import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg

from benchmarks.measurement import Measurement
from noetl.adapters.postgres.projection_store import PostgresProjectionStore
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.projection_store import SqliteProjectionStore
from noetl.adapters.system.clock import utc_now
from noetl.domain.execution.rows import ExecutionRow
from noetl.domain.projection import ProjectionRecord
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import from_millis
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.projection_store import ProjectionStore
from noetl.servers.postgres import PostgresServer
from noetl.testing.histories import START_MILLIS, execution_ids

EXECUTIONS = 100_000
LOOKUPS = 5_000
PAGE_RECORDS = 1_000
TARGET_MS = 10.0

Lookup = Callable[[ExecutionId], Awaitable[object]]


def record(execution: ExecutionId, position: int) -> ProjectionRecord:
    row = ExecutionRow(
        execution_id=execution,
        tenant_id=DEFAULT_SCOPE.tenant_id,
        organization_id=DEFAULT_SCOPE.organization_id,
        status="COMPLETED",
        path="examples/orders",
        event_count=42,
        last_event_id=EventId(execution),
        started_at=from_millis(START_MILLIS),
        ended_at=from_millis(START_MILLIS + 1_000),
    )
    canonical = canonical_json.encode_recorded(row)
    return ProjectionRecord(
        scope=DEFAULT_SCOPE,
        projection_type="execution",
        projection_id=execution,
        execution_id=execution,
        version=42,
        position=position,
        source_event_id=EventId(execution),
        canonical=canonical,
        checksum=canonical_json.sha256_hex(canonical),
    )


async def fill(store: ProjectionStore, executions: list[ExecutionId]) -> None:
    for start in range(0, len(executions), PAGE_RECORDS):
        page = executions[start : start + PAGE_RECORDS]
        await store.save([record(execution, start + 1) for execution in page])


async def p99_ms(lookup: Lookup, executions: list[ExecutionId]) -> float:
    dice = random.Random(7)
    times = []
    for _ in range(LOOKUPS):
        execution = dice.choice(executions)
        started = time.perf_counter()
        found = await lookup(execution)
        times.append((time.perf_counter() - started) * 1000)
        if found is None:
            raise AssertionError(f"{execution} is not there")
    return statistics.quantiles(times, n=100)[98]


async def compare(
    name: str, store: ProjectionStore, bare: Lookup, executions: list[ExecutionId]
) -> Measurement:
    async def load(execution: ExecutionId) -> object:
        return await store.load(DEFAULT_SCOPE, "execution", execution)

    ours = await p99_ms(load, executions)
    return Measurement(
        name=name,
        value=ours,
        unit="ms at p99",
        limit=await p99_ms(bare, executions),
        limit_name="bare SELECT by primary key",
        detail={"executions": EXECUTIONS, "target_ms": TARGET_MS, "met": str(ours < TARGET_MS)},
    )


async def sqlite() -> AsyncIterator[Measurement]:
    executions = execution_ids(EXECUTIONS)
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        file = SqliteFile(Path(folder) / "log.db")
        store = await SqliteProjectionStore.open(file, utc_now)
        await fill(store, executions)
        connection = sqlite3.connect(file.path)

        async def bare(execution: ExecutionId) -> object:
            sql = """SELECT state FROM projection WHERE tenant_id = 'default' AND
                organization_id = 'default' AND projection_type = 'execution'
                AND projection_id = ?"""
            return connection.execute(sql, (execution,)).fetchone()

        yield await compare("status.lookup", store, bare, executions)
        connection.close()
        await file.close()


async def postgres() -> AsyncIterator[Measurement]:
    executions = execution_ids(EXECUTIONS)
    with (
        tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder,
        PostgresServer(Path(folder) / "data") as server,
    ):
        dsn = server.create_database("log")
        store = await PostgresProjectionStore.open(dsn, utc_now)
        await fill(store, executions)
        connection = await asyncpg.connect(dsn)

        async def bare(execution: ExecutionId) -> object:
            sql = """SELECT canonical FROM noetl.projection WHERE tenant_id = 'default' AND
                organization_id = 'default' AND projection_type = 'execution'
                AND projection_id = $1"""
            return await connection.fetchrow(sql, execution)

        yield await compare("status.lookup.postgres", store, bare, executions)
        await connection.close()
        await store.close()


BENCHMARKS = {"status.lookup": sqlite, "status.lookup.postgres": postgres}
