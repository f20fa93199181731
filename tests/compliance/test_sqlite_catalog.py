"""Catalog on SQLite keeps every promise."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.adapters.sqlite.catalog import SqliteCatalog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.system.clock import utc_now
from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.catalog import Catalog
from noetl.testing.compliance.catalog import CatalogCompliance, Reopen


class TestSqliteCatalog(CatalogCompliance):
    @pytest.fixture
    async def file(self, tmp_path: Path) -> AsyncIterator[SqliteFile]:
        file = SqliteFile(tmp_path / "noetl.db")
        yield file
        await file.close()

    @pytest.fixture
    async def catalog(self, file: SqliteFile) -> Catalog:
        return await SqliteCatalog.open(file, utc_now, SnowflakeIds(1).new_id)

    @pytest.fixture
    async def reopen(self, file: SqliteFile) -> AsyncIterator[Reopen]:
        again = SqliteFile(file.path)

        async def reopen() -> Catalog:
            # The first file stays open: its process had no chance to tidy up.
            return await SqliteCatalog.open(again, utc_now, SnowflakeIds(2).new_id)

        yield reopen
        await again.close()


REGISTER_FOR_EVER = """
import asyncio, itertools, sys
from noetl.adapters.sqlite.catalog import SqliteCatalog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.system.clock import utc_now
from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.testing.compliance.catalog import new_entry

async def main(path, node):
    catalog = await SqliteCatalog.open(SqliteFile(path), utc_now, SnowflakeIds(node).new_id)
    for number in itertools.count(node, 10):
        made = await catalog.register(DEFAULT_SCOPE, new_entry(number))
        print(made.version, made.catalog_id, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
PROCESSES = 3
HEARD_FROM_EACH = 7


@pytest.mark.crash
async def test_c1_c6_killed_processes_leave_one_unbroken_count(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", REGISTER_FOR_EVER, str(path), str(node),
            stdout=asyncio.subprocess.PIPE,
        )
        for node in range(1, PROCESSES + 1)
    ]  # fmt: skip
    heard: list[bytes] = []
    for process in processes:
        assert process.stdout is not None
        heard += [await process.stdout.readline() for _ in range(HEARD_FROM_EACH)]
    for process in processes:
        process.kill()
    for process in processes:
        heard += (await process.communicate())[0].splitlines(keepends=True)

    file = SqliteFile(path)
    catalog = await SqliteCatalog.open(file, utc_now, SnowflakeIds(9).new_id)
    listed = await catalog.list(DEFAULT_SCOPE)
    await file.close()

    acknowledged = dict(line.split() for line in heard if line.endswith(b"\n"))
    assert len(acknowledged) == sum(line.endswith(b"\n") for line in heard)  # no version twice
    assert [entry.version for entry in listed] == list(range(1, len(listed) + 1))
    kept = {b"%d" % entry.version: entry.catalog_id.encode() for entry in listed}
    assert acknowledged.items() <= kept.items()


async def test_pages_are_read_from_an_index(tmp_path: Path) -> None:
    """A page that sorted or scanned would grow with the catalogue."""
    file = SqliteFile(tmp_path / "noetl.db")
    catalog = await SqliteCatalog.open(file, utc_now, SnowflakeIds(1).new_id)
    seen: list[str] = []
    await file.read(lambda connection: connection.set_trace_callback(seen.append))
    await catalog.list(DEFAULT_SCOPE, after=("demo", 3))
    await catalog.find(DEFAULT_SCOPE, "demo")
    selects = [statement for statement in seen if "SELECT" in statement]
    plans = await file.read(
        lambda connection: [
            row[3]
            for select in selects
            for row in connection.execute(f"EXPLAIN QUERY PLAN {select}")
        ]
    )
    await file.close()

    prefix = (
        "SEARCH catalog USING INDEX sqlite_autoindex_catalog_1 (tenant_id=? AND organization_id=?"
    )
    assert plans == [f"{prefix} AND (path,version)>(?,?))", f"{prefix} AND path=?)"]
