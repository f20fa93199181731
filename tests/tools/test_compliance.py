"""Every tool keeps the promises that all tools make."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from noetl.domain.events.values import Failure
from noetl.domain.payload import payload_uri
from noetl.domain.work import ChildOutcome
from noetl.kernel.ids import ExecutionId
from noetl.ports.tool import ToolCall
from noetl.templates.recorded import inline_result
from noetl.testing.compliance.tool import KINDS, Look, ToolCompliance
from noetl.tools.artifact import ArtifactTool
from noetl.tools.duckdb import DuckdbTool
from noetl.tools.failures import RETRYABLE_BY_KIND
from noetl.tools.noop import NoopTool
from noetl.tools.playbook import PlaybookTool
from noetl.tools.secrets import SecretsTool
from noetl.tools.sqlite import SqliteTool
from noetl.tools.transfer import TransferTool
from tests.tools.tool_calls import SCOPE, ChildrenDesk, call, credential, services

SECRET = "hunter2-hunter2"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def locks_of(database: Path) -> Look:
    async def locks() -> list[str]:
        with closing(sqlite3.connect(database, timeout=0)) as connection:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                return [str(error)]
        return []

    return locks


def test_the_suite_knows_every_kind_of_failure() -> None:
    assert KINDS == RETRYABLE_BY_KIND.keys()


class TestNoop(ToolCompliance):
    @pytest.fixture
    def tool(self, tmp_path: Path) -> NoopTool:
        return NoopTool(services(tmp_path))

    @pytest.fixture
    def good_call(self) -> ToolCall:
        return call("noop", {"result": {"a": [1, None, "ü"]}})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        pytest.skip("T1: doing nothing cannot fail")


class TestSqlite(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[SqliteTool]:
        with closing(sqlite3.connect(tmp_path / "data.db")) as connection, connection:
            connection.execute("CREATE TABLE here (id INTEGER PRIMARY KEY)")
        opened = SqliteTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def good_call(self) -> ToolCall:
        query = "INSERT OR REPLACE INTO here VALUES (:id); SELECT id FROM here"
        return call("sqlite", {"database": "data.db", "query": query, "params": {"id": 1}})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        stored = credential("unused", password=SECRET)
        given = {"database": "data.db", "query": f"SELECT '{SECRET}' FROM nowhere"}
        return call("sqlite", given, credentials={"": stored})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        query = f"DELETE FROM here; {ENDLESS} SELECT max(i) FROM n"
        return call("sqlite", {"database": "data.db", "query": query})

    @pytest.fixture
    def left_running(self, tmp_path: Path) -> Look:
        return locks_of(tmp_path / "data.db")


class TestDuckdb(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[DuckdbTool]:
        opened = DuckdbTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def good_call(self) -> ToolCall:
        query = "CREATE OR REPLACE TABLE here AS SELECT 1 AS id; SELECT id + $1 AS id FROM here"
        return call("duckdb", {"query": query, "params": [1]})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        stored = credential("keys", key_id="k", secret=SECRET)
        given = {"query": f"SELECT '{SECRET}' FROM nowhere", "database": ":memory:"}
        return call("duckdb", given, credentials={"": stored})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        return call("duckdb", {"query": f"{ENDLESS} SELECT max(i) FROM n"})


class TestArtifact(ToolCompliance):
    @pytest.fixture
    def tool(self, tmp_path: Path) -> ArtifactTool:
        return ArtifactTool(services(tmp_path))

    @pytest.fixture
    def good_call(self) -> ToolCall:
        return call("artifact", {"action": "put", "data": {"n": [1, 2]}})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        return call("artifact", {"action": "get", "uri": payload_uri(SCOPE, "0" * 64)})


class Children(ChildrenDesk):
    """Every child has ended, but for those of the playbooks `bad` and `slow`."""

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        path = self.path_of(child)
        if path == "slow":
            await asyncio.sleep(min(wait_seconds, 0.05))
            return None
        if path == "bad":
            error = Failure(kind="client_error", message="the child was wrong")
            return ChildOutcome(execution_id=child, status="FAILED", error=error)
        return ChildOutcome(execution_id=child, status="COMPLETED", result=inline_result([1]))


class TestPlaybook(ToolCompliance):
    @pytest.fixture
    def desk(self) -> Children:
        return Children()

    @pytest.fixture
    def tool(self, tmp_path: Path, desk: Children) -> PlaybookTool:
        return PlaybookTool(services(tmp_path, desk=desk))

    @pytest.fixture
    def good_call(self) -> ToolCall:
        given = {"path": "good", "version": 1, "input": {"a": 1}, "return_step": None}
        return call("playbook", given | {"wait": True, "return_result": True})

    @pytest.fixture
    def failing_call(self) -> ToolCall:
        return call("playbook", {"path": "bad"}, idempotency_key="bad")

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        return call("playbook", {"path": "slow"}, idempotency_key="slow")

    @pytest.fixture
    def keys_received(self, desk: Children) -> Look:
        async def keys() -> list[str]:
            return [request.cycle for request in desk.requests]

        return keys


class TestSecrets(ToolCompliance):
    @pytest.fixture
    def tool(self, tmp_path: Path) -> SecretsTool:
        return SecretsTool(services(tmp_path))

    @pytest.fixture
    def good_call(self) -> ToolCall:
        stored = credential("stripe", api_key=SECRET)
        given = {"provider": "credential", "name": "stripe", "path": "api_key"}
        return call("secrets", given, credentials={"": stored})

    @pytest.fixture
    def failing_call(self, good_call: ToolCall) -> ToolCall:
        return call("secrets", {"path": "none"}, credentials=good_call.credentials)

    @pytest.fixture
    def secret(self) -> str:
        return SECRET


class TestTransfer(ToolCompliance):
    @pytest.fixture
    async def tool(self, tmp_path: Path) -> AsyncIterator[TransferTool]:
        with closing(sqlite3.connect(tmp_path / "data.db")) as connection, connection:
            connection.execute("CREATE TABLE here (id INTEGER PRIMARY KEY)")
            connection.execute("CREATE TABLE there (id INTEGER PRIMARY KEY)")
            connection.execute("INSERT INTO here VALUES (1), (2)")
        opened = TransferTool(services(tmp_path))
        yield opened
        await opened.close()

    @pytest.fixture
    def good_call(self) -> ToolCall:
        side = {"type": "sqlite", "database": "data.db"}
        given = {"source": {**side, "table": "here"}, "target": {**side, "table": "there"}}
        further = {"mode": "replace", "chunk_size": 1, "mapping": {"id": "id"}}
        return call("transfer", given | further)

    @pytest.fixture
    def failing_call(self, good_call: ToolCall) -> ToolCall:
        wrong = credential("bad", host="127.0.0.1", port=1, database="d", password=SECRET)
        target = {"type": "postgres", "auth": "bad", "table": "t"}
        given = good_call.parameters | {"target": target}
        return call("transfer", given, credentials={"": wrong})

    @pytest.fixture
    def secret(self) -> str:
        return SECRET

    @pytest.fixture
    def slow_call(self, good_call: ToolCall) -> ToolCall:
        query = f"{ENDLESS} SELECT max(i) AS id FROM n"
        source = {"type": "sqlite", "database": "data.db", "query": query}
        return call("transfer", good_call.parameters | {"source": source})

    @pytest.fixture
    def left_running(self, tmp_path: Path) -> Look:
        return locks_of(tmp_path / "data.db")
