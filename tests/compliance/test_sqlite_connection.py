"""One SQLite file: transactions, threads, several openers, and errors in our words."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.kernel.errors import InvariantBroken, LogUnavailable, NoETLError, StoreUnavailable

SCHEMA = """
CREATE TABLE IF NOT EXISTS tally (
    name TEXT PRIMARY KEY, -- a comment; with a semicolon
    number INTEGER NOT NULL
);
INSERT OR IGNORE INTO tally VALUES ('a', 0);
"""
DRIVER_ERRORS = [
    sqlite3.Error,
    *sqlite3.Error.__subclasses__(),
    *sqlite3.DatabaseError.__subclasses__(),
]


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteFile]:
    file = SqliteFile(tmp_path / "noetl.db", busy_seconds=0.05)
    await file.migrate(SCHEMA)
    yield file
    await file.close()


def add_one(connection: sqlite3.Connection) -> int:
    """Read, then write: two writers at once would lose additions."""
    number = tally(connection)
    connection.execute("UPDATE tally SET number = ?", (number + 1,))
    return number + 1


def tally(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT number FROM tally").fetchone()[0])


def pragma(name: str) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0]


async def test_what_is_written_is_read(file: SqliteFile) -> None:
    assert await file.write(add_one) == 1
    assert await file.read(tally) == 1


async def test_the_file_is_durable_and_readers_do_not_block_the_writer(file: SqliteFile) -> None:
    synchronous_full = 2
    for run in (file.write, file.read):
        assert await run(pragma("journal_mode")) == "wal"
        assert await run(pragma("synchronous")) == synchronous_full
        assert await run(pragma("foreign_keys")) == 0


async def test_writers_have_one_thread_and_readers_another(file: SqliteFile) -> None:
    threads = [
        {await run(lambda _: threading.get_ident()) for _ in range(3)}
        for run in (file.write, file.read)
    ]
    here = threading.get_ident()
    assert len(set.union(*threads, {here})) == 3


async def test_work_that_raises_leaves_nothing_behind(file: SqliteFile) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        add_one(connection)
        raise KeyError("the work's own error comes out as it is")

    with pytest.raises(KeyError):
        await file.write(fail)

    assert await file.read(tally) == 0
    assert await file.write(add_one) == 1


async def test_a_read_sees_one_moment(file: SqliteFile) -> None:
    reading, written = threading.Event(), threading.Event()

    def read_twice(connection: sqlite3.Connection) -> tuple[int, int]:
        first = tally(connection)
        reading.set()
        assert written.wait(timeout=10)
        return first, tally(connection)

    read = asyncio.create_task(file.read(read_twice))
    await asyncio.to_thread(reading.wait)
    await file.write(add_one)
    written.set()

    assert await read == (0, 0)
    assert await file.read(tally) == 1


async def test_a_read_cannot_write(file: SqliteFile) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"):
        await file.read(add_one)
    assert await file.read(tally) == 0


async def test_a_migration_lands_whole_or_not_at_all(file: SqliteFile) -> None:
    with pytest.raises(InvariantBroken):
        await file.migrate("CREATE TABLE half (a);\nCREATE TABLE;\n")
    await file.migrate("CREATE TABLE half (a);\nINSERT INTO half VALUES (7)")
    assert await file.read(lambda at: at.execute("SELECT a FROM half").fetchall()) == [(7,)]


async def test_a_migration_runs_at_every_opening(file: SqliteFile) -> None:
    await file.write(add_one)
    await file.migrate(SCHEMA)
    assert await file.read(tally) == 1


async def test_many_openers_lose_no_write(file: SqliteFile) -> None:
    openers = [SqliteFile(file.path) for _ in range(8)]

    await asyncio.gather(*(opener.write(add_one) for opener in openers for _ in range(5)))

    assert [await opener.read(tally) for opener in openers] == [40] * 8
    for opener in openers:
        await opener.close()


async def test_a_file_that_stays_locked_is_unavailable(file: SqliteFile) -> None:
    other = sqlite3.connect(file.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="locked"):
        await file.write(add_one)
    with pytest.raises(LogUnavailable, match="locked"):
        await file.raising(LogUnavailable).write(add_one)
    assert await file.read(tally) == 0

    other.execute("ROLLBACK")
    other.close()
    assert await file.write(add_one) == 1


async def test_a_full_disk_is_unavailable_and_nothing_is_half_written(file: SqliteFile) -> None:
    def grow(connection: sqlite3.Connection) -> None:
        add_one(connection)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        connection.execute("INSERT INTO tally VALUES (hex(zeroblob(1000000)), 1)")

    with pytest.raises(StoreUnavailable, match="full"):
        await file.write(grow)

    assert await file.read(tally) == 0
    assert await file.write(add_one) == 1


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "missing" / "noetl.db")
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await file.read(tally)
    (tmp_path / "missing").mkdir()
    await file.migrate(SCHEMA)
    assert await file.read(tally) == 0
    await file.close()


async def test_a_damaged_file_stops_the_process(tmp_path: Path) -> None:
    path = tmp_path / "noetl.db"
    path.write_bytes(b"not a database" * 1000)
    file = SqliteFile(path)
    with pytest.raises(InvariantBroken, match="damaged"):
        await file.read(tally)
    await file.close()


@pytest.mark.parametrize("error", DRIVER_ERRORS)
async def test_no_error_of_the_driver_comes_out_as_it_is(
    file: SqliteFile, error: type[sqlite3.Error]
) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise error("from the driver")

    with pytest.raises(NoETLError, match="from the driver"):
        await file.write(fail)
    assert await file.write(add_one) == 1


async def test_closing_finishes_what_was_asked_for(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "noetl.db")
    await file.migrate(SCHEMA)
    asked = [asyncio.create_task(file.write(add_one)) for _ in range(5)]
    await asyncio.sleep(0)

    await file.close()
    await file.close()

    assert await asyncio.gather(*asked) == [1, 2, 3, 4, 5]
    with pytest.raises(LogUnavailable, match="closed"):
        await file.raising(LogUnavailable).read(tally)
