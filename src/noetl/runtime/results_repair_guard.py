"""Running again without doing anything twice: whoever would fire an effect is stopped before it."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from noetl.domain.chunk import ChunkTold
from noetl.domain.work import (
    Call,
    ChildOutcome,
    ChildRequest,
    FrameStart,
    Heartbeat,
    JournalEntry,
    LeaseAnswer,
    Report,
    Reported,
    Work,
    WorkerIdentity,
)
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import CommandId, ExecutionId, FrameId
from noetl.pipeline.boundary import Tools
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.ports.tool import Tool, ToolCall, ToolResult
from noetl.runtime.worker_commands import Pipelines

_NEVER = {
    "playbook": "starts another execution",
    "transfer": "writes to its target",
    "wait": "waits for a time that is over",
}
_HAS_EFFECTS = "has effects, which are never fired again"


class NotAgain(ClaimLost):
    """Unwinds a pipeline, whatever its rules say about failures."""

    def __init__(self, reason: str) -> None:
        super().__init__("running it again", reason)
        self.reason = reason


class EffectFreeTools:
    """Tools by kind, without those that change something although repeating them is no harm."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def get(self, kind: str) -> Tool:
        if kind in _NEVER:
            raise NotAgain(f"a {kind} task {_NEVER[kind]}")
        return _Guarded(kind, self._tools.get(kind))


class _Guarded:
    def __init__(self, kind: str, tool: Tool) -> None:
        self._kind = kind
        self._tool = tool

    @property
    def waits(self) -> bool:
        return self._tool.waits

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        """A consumer moves on even when nothing is acknowledged."""
        if self._kind == "nats" and parameters.get("operation") == "js_consume":
            return True
        return self._tool.has_effect(parameters)

    async def run(self, call: ToolCall) -> ToolResult:
        return await self._tool.run(call)

    async def close(self) -> None:
        """Whoever made the tool closes it."""


class ClosedJournal:
    """Of frames: what it held went with the commit, and nothing new is written."""

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        del execution, frame, entries
        raise NotAgain(f"its pipeline {_HAS_EFFECTS}")

    async def read(self, execution: ExecutionId, frame: FrameId) -> list[JournalEntry]:
        del execution, frame
        return []

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        """There is none."""


class EffectFreePipelines:
    """The interpreter, with a journal that is asked before any effect and refuses it."""

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines

    async def run(self, job: Job, journal: Journal, hold: Hold) -> RowResult:
        del journal
        return await self._pipelines.run(job, _RowGuard(), hold)


class _RowGuard:
    """An effect that is not adopted ends the run before it begins."""

    async def begin(self, *, alone: bool) -> None:
        del alone
        raise NotAgain(f"its pipeline {_HAS_EFFECTS}")

    def tried(self, call: Call) -> None:
        """Nothing is tried that could be recorded."""

    async def record(self, call: Call) -> None:
        raise NotAgain(f"task {call.task!r} {_HAS_EFFECTS}")


class FreeHold:
    """Nobody else has the work, and nobody waits for the slot."""

    is_told_to_wait = False

    def check(self) -> None:
        """It is never lost."""

    async def park(self) -> None:
        """There is no slot to give back."""

    async def unpark(self) -> None:
        """There is none to take."""


class ClosedDesk:
    """Where nothing is handed out and nothing recorded."""

    async def register(self, worker: WorkerIdentity) -> None:
        _refuse(worker)

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        _refuse(worker, free_slots, wait_seconds)

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        _refuse(beat)

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        _refuse(execution, command, claim, call)

    async def record_chunk(self, told: ChunkTold) -> LeaseAnswer:
        _refuse(told)

    async def frame_started(self, start: FrameStart) -> LeaseAnswer:
        _refuse(start)

    async def report(self, report: Report) -> Reported:
        _refuse(report)

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        _refuse(request)

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        _refuse(child, wait_seconds)

    async def deregister(self, worker: WorkerIdentity) -> None:
        _refuse(worker)


def _refuse(*_asked: object) -> NoReturn:
    raise NotAgain("asks for more than may be done again")
