"""ProjectionStore on SQLite keeps every promise."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.projection_store import SqliteProjectionStore
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.ports.projection_store import ProjectionStore
from noetl.testing.compliance.projection_store import ProjectionStoreCompliance, Reopen
from noetl.testing.projections import FIRST, cursor_at, query, record


def clock() -> Instant:
    return Instant("2026-01-01T00:00:00.000000Z")


class TestSqliteProjectionStore(ProjectionStoreCompliance):
    @pytest.fixture
    async def file(self, tmp_path: Path) -> AsyncIterator[SqliteFile]:
        file = SqliteFile(tmp_path / "noetl.db")
        yield file
        await file.close()

    @pytest.fixture
    async def projection_store(self, file: SqliteFile) -> ProjectionStore:
        return await SqliteProjectionStore.open(file, clock)

    @pytest.fixture
    async def reopen(self, file: SqliteFile) -> AsyncIterator[Reopen]:
        again = SqliteFile(file.path)

        async def reopen(_: ProjectionStore) -> ProjectionStore:
            # The first file stays open: its process had no chance to tidy up.
            return await SqliteProjectionStore.open(again, clock)

        yield reopen
        await again.close()


SAVE_FOR_EVER = """
import asyncio, itertools, sys
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.projection_store import SqliteProjectionStore
from noetl.adapters.system.clock import utc_now
from noetl.testing.projections import cursor_at, record

async def main():
    store = await SqliteProjectionStore.open(SqliteFile(sys.argv[1]), utc_now)
    for version in itertools.count(1):
        batch = [record(projection_id=name, version=version) for name in "abc"]
        await store.save(batch, cursor_at(version))
        print(version, flush=True)

asyncio.run(main())
"""


@pytest.mark.crash
@pytest.mark.parametrize("acknowledged", [1, 7, 40])
async def test_p3_p6_a_killed_process_leaves_records_and_cursor_together(
    tmp_path: Path, acknowledged: int
) -> None:
    path = tmp_path / "noetl.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SAVE_FOR_EVER, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(acknowledged):
        assert await process.stdout.readline()
    process.kill()
    heard = [acknowledged, *map(int, (await process.stdout.read()).split())]
    await process.wait()

    file = SqliteFile(path)
    store = await SqliteProjectionStore.open(file, clock)
    cursor = await store.cursor("projector/0")
    versions = {each.version for each in await store.query(query())}
    await file.close()

    assert cursor is not None
    assert cursor.position >= heard[-1]
    assert versions == {cursor.position}


async def test_updated_at_is_the_time_of_the_last_change(tmp_path: Path) -> None:
    times = [Instant(f"2026-01-01T00:00:0{second}.000000Z") for second in range(3)]
    file = SqliteFile(tmp_path / "noetl.db")
    store = await SqliteProjectionStore.open(file, iter(times).__next__)
    for version, position in ((1, 1), (2, 2), (2, 2)):
        await store.save([record(version=version)], cursor_at(position))

    def updated(connection: sqlite3.Connection) -> list[str]:
        tables = ("projection", "projection_checkpoint")
        reads = (connection.execute(f"SELECT updated_at FROM {table}") for table in tables)
        return [row[0] for read in reads for row in read]

    assert await file.read(updated) == [times[1], times[1]]
    await file.close()


@pytest.mark.parametrize("execution", [None, FIRST])
async def test_pages_are_read_from_an_index(tmp_path: Path, execution: ExecutionId | None) -> None:
    """A query that sorted or scanned would grow with the tenant, not with the page."""
    file = SqliteFile(tmp_path / "noetl.db")
    store = await SqliteProjectionStore.open(file, clock)
    seen: list[str] = []
    await file.read(lambda connection: connection.set_trace_callback(seen.append))
    await store.query(query(execution_id=execution, after_id="a"))
    (select,) = [statement for statement in seen if "SELECT" in statement]
    plans = await file.read(
        lambda connection: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {select}")]
    )
    assert len(plans) == 1
    assert plans[0].startswith("SEARCH projection USING INDEX")
    assert "projection_id>?" in plans[0]
    assert ("execution_id=?" in plans[0]) is (execution is not None)
    await file.close()
