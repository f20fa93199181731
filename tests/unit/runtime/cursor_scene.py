"""A table of work in memory that frames claim from, and a worker that does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from noetl.domain.events.values import Failure
from noetl.domain.work import FrameWork
from noetl.pipeline.claims import PreparedClaim
from noetl.pipeline.job import Job
from noetl.pipeline.sensitive import SecretsSeen
from noetl.ports.cursor import ClaimRequest, Fate
from noetl.ports.tool import ToolCall, ToolFailed
from noetl.templates.secret import Secret
from tests.unit.runtime.frame_scene import doubled
from tests.unit.runtime.worker_scene import Behaving, Behaviour, Scene, frame

STEPS = """
- step: load
  loop:
    cursor: {kind: sqlite, claim: "SELECT 1"}
    iterator: order
    spec: {mode: cursor}
  tool: {kind: noop}
"""
WHOLE = STEPS.replace("mode: cursor", "mode: cursor, frame: {process: frame}")
AWAY = ToolFailed(Failure(kind="connection", message="no database", retryable=True))
WRONG = ToolFailed(Failure(kind="schema", message="no such table: work"))


class Table:
    """What is in it is pending; a claim takes `max_rows`, and puts them back unless committed."""

    def __init__(self, *pending: Any) -> None:
        self.pending = list(pending)
        self.committed: list[str] = []  # names of claims
        self.requests: list[ClaimRequest] = []
        self.trouble: list[Exception] = []  # raised by the next questions
        self.trouble_at_commit: list[Exception] = []
        self.fates: list[Fate] = []  # the answers to the next questions
        self.asked: list[str] = []  # whose fate was asked for

    def get(self, kind: str) -> "Table":
        assert kind == "sqlite"
        return self

    @asynccontextmanager
    async def claim(self, request: ClaimRequest) -> AsyncIterator["OpenTable"]:
        self.requests.append(request)
        if self.trouble:
            raise self.trouble.pop(0)
        size = request.call.parameters["max_rows"]
        rows, self.pending = self.pending[:size], self.pending[size:]
        opened = OpenTable(self, rows, request.name)
        try:
            yield opened
        finally:
            if not opened.is_committed:
                self.pending = rows + self.pending

    async def fate(self, request: ClaimRequest, transaction: str) -> Fate:
        self.asked.append(transaction)
        if self.trouble:
            raise self.trouble.pop(0)
        return self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]

    async def close(self) -> None: ...


class OpenTable:
    def __init__(self, table: Table, rows: list[Any], name: str) -> None:
        self.rows = rows
        self.transaction = name
        self.is_committed = False
        self._table = table

    async def commit(self) -> None:
        if self._table.trouble_at_commit:
            raise self._table.trouble_at_commit.pop(0)
        self._table.committed.append(self.transaction)
        self.is_committed = True


class Calls:
    """Claims that say how large a frame may be, and hold secrets."""

    def __init__(self, *secrets: str) -> None:
        self.slots: list[str] = []
        self._secrets = secrets

    async def claim(
        self, job: Job, policy: Mapping[str, Any], worker_slot_id: str
    ) -> PreparedClaim:
        self.slots.append(worker_slot_id)
        seen = SecretsSeen()
        seen.add(tuple(Secret(text) for text in self._secrets))
        call = ToolCall(
            kind="sqlite",
            task="claim",
            step=job.step.name,
            execution_id=job.facts.run.execution_id,
            scope=job.scope,
            parameters={"max_rows": policy.get("max_rows", 1)},
        )
        return PreparedClaim(call, seen)


def scene(
    table: Table, behaviour: Behaviour = doubled, calls: Calls | None = None, steps: str = STEPS
) -> Scene:
    return Scene(Behaving(behaviour), steps=steps, claims=(table, calls or Calls()))


def unclaimed(**fields: Any) -> FrameWork:
    """A frame of a cursor as it is handed out."""
    given: dict[str, Any] = {"mode": "cursor", "total": 0, "policy": {"max_rows": 3}, **fields}
    return frame(None, **given)
