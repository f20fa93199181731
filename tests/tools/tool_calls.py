"""Calls and services for tools that are tested alone."""

from pathlib import Path
from typing import Any

from noetl.adapters.system.clock import SystemClock
from noetl.domain.credential import OpenCredential
from noetl.domain.work import (
    Call,
    ChildOutcome,
    ChildRequest,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    Work,
    WorkerIdentity,
)
from noetl.kernel.ids import CommandId, ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.ports.clock import Clock
from noetl.ports.tool import ToolCall
from noetl.ports.tool_services import ToolServices
from noetl.ports.work_desk import ChildDesk
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results

SCOPE = Scope("acme", "research")
EXECUTION = ExecutionId("7001")
KEY = "7001/load/1/0/task/1"


class ChildrenDesk:
    """A desk that only knows children: one per cycle, each with the end that the test gives it."""

    def __init__(self, *ends: ChildOutcome | None) -> None:
        self.requests: list[ChildRequest] = []
        self.waits: list[float] = []
        self._ends = list(ends)
        self._children: dict[str, ExecutionId] = {}

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        self.requests.append(request)
        fresh = ExecutionId(str(9000 + len(self._children)))
        return self._children.setdefault(request.cycle, fresh)

    def path_of(self, child: ExecutionId) -> str | None:
        """The playbook that was first asked for under the child's cycle."""
        return next(asked.path for asked in self.requests if self._children[asked.cycle] == child)

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        self.waits.append(wait_seconds)
        return self._ends.pop(0) if self._ends else None

    async def register(self, worker: WorkerIdentity) -> None:
        raise AssertionError("a tool does not register")

    async def claim(
        self, worker: WorkerIdentity, free_slots: int, wait_seconds: float
    ) -> list[Work]:
        raise AssertionError("a tool does not claim")

    async def heartbeat(self, beat: Heartbeat) -> LeaseAnswer:
        raise AssertionError("a tool holds no lease")

    async def record_call(
        self, execution: ExecutionId, command: CommandId, claim: int, call: Call
    ) -> LeaseAnswer:
        raise AssertionError("a tool records nothing")

    async def report(self, report: Report) -> Reported:
        raise AssertionError("a tool reports nothing")

    async def deregister(self, worker: WorkerIdentity) -> None:
        raise AssertionError("a tool does not register")


def services(
    folder: Path,
    *,
    desk: ChildDesk | None = None,
    clock: Clock | None = None,
    payloads: MemoryPayloadStore | None = None,
) -> ToolServices:
    payloads = payloads or MemoryPayloadStore()
    return ToolServices(
        payloads=payloads,
        results=memory_results(payloads),
        clock=clock or SystemClock(),
        desk=desk or ChildrenDesk(),
        folder=folder,
        base=folder,
    )


def call(kind: str, parameters: dict[str, Any] | None = None, **further: Any) -> ToolCall:
    facts: dict[str, Any] = {
        "task": "task",
        "step": StepName("load"),
        "execution_id": EXECUTION,
        "scope": SCOPE,
        "idempotency_key": KEY,
        "command_id": CommandId("7002"),
    }
    return ToolCall(kind=kind, parameters=parameters or {}, **(facts | further))


def credential(name: str, **data: Any) -> OpenCredential:
    return OpenCredential(name=name, type="secret", data=data)
