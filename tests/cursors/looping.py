"""Loops over a table of work, as each database wants them written."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.credential import NewCredential
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.runtime.endings import Ending
from noetl.runtime.starting import StartRequest
from noetl.servers.postgres import login_of
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from noetl.wire.codec import open_stored

RUN_SECONDS_MAX = 180.0

_UPDATE = """
  UPDATE work SET status = 'claimed' WHERE id IN (
    SELECT id FROM work WHERE status = 'pending'
    ORDER BY id LIMIT {{ __frame_max_rows | default(1) | int }})
  RETURNING id
"""
_SKIP_LOCKED = """
  WITH chosen AS (
    SELECT id FROM work WHERE status = 'pending'
    ORDER BY id FOR UPDATE SKIP LOCKED LIMIT {{ __frame_max_rows | default(1) | int }})
  UPDATE work SET status = 'claimed' FROM chosen WHERE work.id = chosen.id RETURNING work.id
"""


@dataclass(frozen=True)
class Dialect:
    """`place` says where the database is, in a tool and in a cursor alike."""

    place: dict[str, str]
    claim: str = _UPDATE
    credentials: list[NewCredential] = field(default_factory=list)

    def playbook(self, spec: dict[str, Any], tasks: list[Any], **further: Any) -> dict[str, Any]:
        """Ten rows of work, a loop over them, and what is in the table in the end."""
        cursor = {**self.place, "claim": self.claim, **further}
        return {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": "loop", "path": "cursors/loop"},
            "workload": {"count": 10},
            "workflow": [
                {"step": "prepare", "tool": self.sql(_PREPARE), "next": "each"},
                {
                    "step": "each",
                    "loop": {"cursor": cursor, "iterator": "row", "spec": spec},
                    "tool": tasks,
                    "next": "count",
                },
                {"step": "count", "tool": self.sql(_COUNT), "next": "end"},
                {"step": "end", "tool": {"kind": "noop", "result": _SEEN}},
            ],
        }

    def sql(self, query: str, name: str = "sql", **further: Any) -> dict[str, Any]:
        """A file that somebody else is about to close cannot be opened for a moment."""
        again = {"do": "retry", "attempts": 5, "delay": 0.1}
        rules = [
            {"when": "{{ output.error.retryable }}", "then": again},
            {"when": "{{ output.status == 'error' }}", "then": {"do": "fail"}},
        ]
        spec = {"policy": {"rules": rules}}
        return {"name": name, **self.place, "query": query, "spec": spec, **further}


_PREPARE = """
  CREATE TABLE work (id INTEGER PRIMARY KEY, status TEXT);
  CREATE TABLE target (id INTEGER, told TEXT);
  {% for number in range(1, count + 1) %}INSERT INTO work VALUES ({{ number }}, 'pending');
  {% endfor %}
"""
_COUNT = "SELECT id FROM target ORDER BY id"
_SEEN = {
    "target": "{{ count.rows | map(attribute='id') | list }}",
    "results": "{{ each.results }}",
    "stats": "{{ each.stats }}",
}


def sqlite_dialect(folder: Path) -> Dialect:
    return Dialect({"kind": "sqlite", "database": str(folder / "work.db")})


def duckdb_dialect(folder: Path) -> Dialect:
    return Dialect({"kind": "duckdb", "database": str(folder / "work.duckdb")})


def postgres_dialect(dsn: str) -> Dialect:
    credential = NewCredential(name="work", type="postgres", data=login_of(dsn))
    return Dialect({"kind": "postgres", "auth": "work"}, _SKIP_LOCKED, [credential])


class Bench:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def start(self, playbook: dict[str, Any], **payload: Any) -> ExecutionId:
        scope = self.engine.settings.scope
        found = await self.engine.playbooks.register(scope, _as_text(playbook))
        request = StartRequest(scope=scope, path=found.entry.path, payload=payload)
        return await self.engine.starter.start(request)

    async def ending(self, execution: ExecutionId) -> Ending:
        ending = await self.engine.coordinator.ending(execution, RUN_SECONDS_MAX)
        assert ending is not None
        return ending

    async def result(self, playbook: dict[str, Any], **payload: Any) -> Any:
        ending = await self.ending(await self.start(playbook, **payload))
        assert ending.status == "COMPLETED", ending.error
        return seen_in(ending)

    async def events(self, execution: ExecutionId) -> list[RecordedEvent]:
        found: list[RecordedEvent] = []
        while page := await self.engine.platform.log.read(execution, after_version=len(found)):
            found += [open_stored(stored) for stored in page]
        return found


@asynccontextmanager
async def open_bench(home: Path, dialect: Dialect) -> AsyncIterator[Bench]:
    async with open_engine(Settings(home=str(home), stage_engine="local")) as engine:
        for credential in dialect.credentials:
            await engine.platform.credentials.put(engine.settings.scope, credential)
        yield Bench(engine)


def seen_in(ending: Ending) -> Any:
    assert ending.result is not None
    return plain_result(value_of(ending.result))


def _as_text(playbook: dict[str, Any]) -> str:
    return json.dumps(playbook)  # JSON is YAML
