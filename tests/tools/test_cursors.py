"""Cursor drivers on real databases keep their promises."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import duckdb
import pytest

from noetl.domain.credential import OpenCredential
from noetl.ports.cursor import Cursor
from noetl.ports.tool import ToolCall, ToolFailed
from noetl.testing.compliance.cursor import CursorCompliance, WorkTable
from noetl.tools.cursors import CursorDrivers
from tests.tools.cursor_factories import cursor
from tests.tools.postgres_database import Database
from tests.tools.tool_calls import call, services

ROWS = (
    "INSERT INTO work VALUES (1,'pending'),(2,'pending'),(3,'pending'),(4,'pending'),(5,'pending')"
)
TABLE = "CREATE TABLE work (id INTEGER PRIMARY KEY, status VARCHAR(20))"
KEPT = "SELECT name FROM noetl_cursor_claims ORDER BY name"
PENDING = "SELECT id FROM work WHERE status = 'pending' ORDER BY id"


class _Table(WorkTable):
    factory = "tests.tools.cursor_factories:cursor"
    kind: str

    def __init__(self, folder: Path, driver: Cursor) -> None:
        self.folder = folder
        self.cursor = driver

    def arguments(self) -> dict[str, Any]:
        return {"kind": self.kind, "folder": str(self.folder)}

    def call(self, sql: str) -> ToolCall:
        return call(self.kind, {"database": "work.db", "query": sql})


class SqliteTable(_Table):
    kind = "sqlite"

    async def pending(self) -> list[int]:
        with sqlite3.connect(self.folder / "work.db") as connection:
            return [row[0] for row in connection.execute(PENDING)]

    async def kept(self) -> list[str]:
        with sqlite3.connect(self.folder / "work.db") as connection:
            return [row[0] for row in connection.execute(KEPT)]


class DuckdbTable(_Table):
    kind = "duckdb"

    async def pending(self) -> list[int]:
        with duckdb.connect(str(self.folder / "work.db")) as connection:
            return [row[0] for row in connection.execute(PENDING).fetchall()]

    async def kept(self) -> list[str]:
        with duckdb.connect(str(self.folder / "work.db")) as connection:
            return [row[0] for row in connection.execute(KEPT).fetchall()]


class PostgresTable(_Table):
    kind = "postgres"
    claim_sql = (
        "WITH chosen AS (SELECT id FROM work WHERE status = 'pending' ORDER BY id"
        " FOR UPDATE SKIP LOCKED LIMIT {rows})"
        " UPDATE work SET status = 'claimed' FROM chosen WHERE work.id = chosen.id"
        " RETURNING work.id"
    )

    def __init__(self, folder: Path, driver: Cursor, dsn: str) -> None:
        super().__init__(folder, driver)
        self.dsn = dsn

    def call(self, sql: str) -> ToolCall:
        fields = Database(None, self.dsn).fields  # type: ignore[arg-type]  # only its fields
        secret = OpenCredential(name="pg", type="postgres", data=fields)
        return call("postgres", {"query": sql}, credentials={"": secret})

    async def pending(self) -> list[int]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return [row["id"] for row in await connection.fetch(PENDING)]
        finally:
            await connection.close()

    async def kept(self) -> list[str]:
        return []


class TestSqliteCursor(CursorCompliance):
    @pytest.fixture
    async def work(self, tmp_path: Path) -> AsyncIterator[WorkTable]:
        with sqlite3.connect(tmp_path / "work.db") as connection:
            connection.executescript(f"PRAGMA journal_mode=WAL; {TABLE}; {ROWS};")
        driver = cursor("sqlite", str(tmp_path))
        yield SqliteTable(tmp_path, driver)
        await driver.close()


class TestDuckdbCursor(CursorCompliance):
    @pytest.fixture
    async def work(self, tmp_path: Path) -> AsyncIterator[WorkTable]:
        with duckdb.connect(str(tmp_path / "work.db")) as connection:
            connection.execute(TABLE)
            connection.execute(ROWS)
        driver = cursor("duckdb", str(tmp_path))
        yield DuckdbTable(tmp_path, driver)
        await driver.close()


@pytest.mark.servers
class TestPostgresCursor(CursorCompliance):
    @pytest.fixture
    async def work(self, tmp_path: Path, postgres_dsn: str) -> AsyncIterator[WorkTable]:
        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute(f"DROP TABLE IF EXISTS work; {TABLE}; {ROWS}")
        await connection.close()
        driver = cursor("postgres", str(tmp_path))
        yield PostgresTable(tmp_path, driver, postgres_dsn)
        await driver.close()


async def test_an_unknown_database_is_named_with_the_known_ones(tmp_path: Path) -> None:
    drivers = CursorDrivers(services(tmp_path))
    with pytest.raises(ToolFailed, match="did you mean 'sqlite'"):
        drivers.get("sqlit")
