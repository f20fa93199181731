"""Named points between an effect and its acknowledgement, where a process can be made to die.

The ports are wrapped from outside: what runs is the program as it is.
"""

import os
import signal
from collections.abc import AsyncIterable, Sequence
from typing import Any, Literal

from noetl.domain.work import Call, JournalEntry, LeaseAnswer, Report, Reported
from noetl.kernel.ids import CommandId, ExecutionId, FrameId
from noetl.pipeline.boundary import Tools
from noetl.ports.frame_journal import FrameJournal
from noetl.ports.object_store import OCTETS, ObjectStore, StoredObject
from noetl.ports.tool import Tool, ToolCall, ToolResult
from noetl.ports.work_desk import WorkDesk
from tests.crash.words import tell

Point = Literal["marked", "fired", "journaled", "staged", "reported"]


class Crossings:
    """Death at the n-th crossing of one point; 0 is never."""

    def __init__(self, point: Point, number: int) -> None:
        self._point = point
        self._left = number

    def cross(self, point: Point) -> None:
        if point != self._point:
            return
        self._left -= 1
        if self._left == 0:
            tell({"dying": point})
            os.kill(os.getpid(), signal.SIGKILL)


class Wrapped:
    """Whatever is not wrapped is as it was."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class MortalTools:
    def __init__(self, tools: Tools, crossings: Crossings) -> None:
        self._tools = tools
        self._crossings = crossings

    def get(self, kind: str) -> Tool:
        return MortalTool(self._tools.get(kind), self._crossings)


class MortalTool(Wrapped):
    def __init__(self, inner: Tool, crossings: Crossings) -> None:
        super().__init__(inner)
        self._crossings = crossings

    async def run(self, call: ToolCall) -> ToolResult:
        """The mark is durable before, and the target has been told after."""
        if not self._inner.has_effect(call.parameters):
            return await self._ran(call)
        self._crossings.cross("marked")
        try:
            return await self._ran(call)
        finally:
            self._crossings.cross("fired")

    async def _ran(self, call: ToolCall) -> ToolResult:
        result: ToolResult = await self._inner.run(call)
        return result


class MortalJournal(Wrapped):
    def __init__(self, inner: FrameJournal, crossings: Crossings) -> None:
        super().__init__(inner)
        self._crossings = crossings

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        await self._inner.append(execution, frame, entries)
        if any(entry.call is not None or entry.has_ended for entry in entries):
            self._crossings.cross("journaled")


class MortalObjects(Wrapped):
    def __init__(self, inner: ObjectStore, crossings: Crossings) -> None:
        super().__init__(inner)
        self._crossings = crossings

    async def create(
        self, key: str, data: bytes | AsyncIterable[bytes], *, media_type: str = OCTETS
    ) -> StoredObject:
        stored: StoredObject = await self._inner.create(key, data, media_type=media_type)
        self._crossings.cross("staged")
        return stored


class MortalDesk(Wrapped):
    def __init__(self, inner: WorkDesk, crossings: Crossings) -> None:
        super().__init__(inner)
        self._crossings = crossings

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        answer: LeaseAnswer = await self._inner.record_call(execution, command, claim, call)
        self._crossings.cross("journaled")
        return answer

    async def report(self, report: Report) -> Reported:
        self._crossings.cross("staged")  # what is inside the report is staged with it
        answer: Reported = await self._inner.report(report)
        self._crossings.cross("reported")
        return answer
