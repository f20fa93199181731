"""The same ports with the barrier taken out: what was recorded is not found again."""

from typing import Any

import msgspec

from noetl.domain.work import CommandWork, JournalEntry, Report, Reported, Work, WorkerIdentity
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.pipeline.boundary import Tools
from noetl.ports.tool import Tool, ToolCall, ToolResult
from tests.crash.once_points import Wrapped


class ForgetfulJournal(Wrapped):
    async def read(self, _execution: ExecutionId, _frame: FrameId) -> list[JournalEntry]:
        return []


class ForgetfulDesk(Wrapped):
    """Work comes without the calls that its earlier holders have recorded."""

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        works = await self._inner.claim(worker, free_slots, wait_seconds)
        return [_without_journal(work) for work in works]

    async def report(self, report: Report) -> Reported:
        answer: Reported = await self._inner.report(report)
        further = tuple(_without_journal(work) for work in answer.next_work)
        return msgspec.structs.replace(answer, next_work=further)


def _without_journal(work: Work) -> Work:
    return msgspec.structs.replace(work, journal=()) if isinstance(work, CommandWork) else work


class KeylessTools:
    """Every process sends keys of its own: a target that honours keys cannot know them again."""

    def __init__(self, tools: Tools, process: str) -> None:
        self._tools = tools
        self._process = process

    def get(self, kind: str) -> Tool:
        return KeylessTool(self._tools.get(kind), self._process)


class KeylessTool(Wrapped):
    def __init__(self, inner: Any, process: str) -> None:
        super().__init__(inner)
        self._process = process

    async def run(self, call: ToolCall) -> ToolResult:
        key = f"{call.idempotency_key}/{self._process}"
        result: ToolResult = await self._inner.run(
            msgspec.structs.replace(call, idempotency_key=key)
        )
        return result
