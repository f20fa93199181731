"""Rows for tests: a playbook in a few lines, tools that are functions, a clock that obeys."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from noetl.adapters.memory.credential_store import MemoryCredentialStore
from noetl.domain.credential import NewCredential
from noetl.domain.events.values import Failure, Result
from noetl.domain.playbook.model import Playbook
from noetl.domain.work import Call, Facts, RunFacts
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.pipeline.interpreter import Interpreter
from noetl.pipeline.job import Job, RowResult
from noetl.ports.tool import Tool, ToolCall, ToolFailed, ToolResult
from tests.memory_payloads import MemoryPayloadStore
from tests.memory_results import memory_results
from tests.unit.dsl.writing import playbook, with_steps

SCOPE = Scope("acme", "ops")
NOW = Instant("2026-11-16T10:00:00.000000Z")


class ObedientClock:
    """Moves only when somebody sleeps, and remembers for how long."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.slept: list[float] = []

    def now(self) -> Instant:
        return NOW

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.slept.append(seconds)


class FunctionTool:
    """A tool that is a function of its call; it remembers every call."""

    def __init__(
        self, function: Callable[[ToolCall], Any], *, effect: bool = False, waits: bool = False
    ) -> None:
        self.calls: list[ToolCall] = []
        self.waits = waits
        self._function = function
        self._effect = effect

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return self._effect

    async def run(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        given = self._function(call)
        if hasattr(given, "__await__"):
            given = await given
        return given if isinstance(given, ToolResult) else ToolResult(value=given)

    async def close(self) -> None:
        """Nothing to give back."""


class Toolbox:
    def __init__(self, **tools: Tool) -> None:
        self.by_kind = {"noop": FunctionTool(echo), **tools}

    def get(self, kind: str) -> Tool:
        if kind not in self.by_kind:
            raise fails("client_error", f"there is no tool {kind!r}")
        return self.by_kind[kind]


class MemoryJournal:
    """Dies after `survives` records, as a worker would."""

    def __init__(self, survives: int | None = None) -> None:
        self.calls: list[Call] = []
        self.begun: list[bool] = []  # whether each was to be marked alone
        self.tries: list[Call] = []
        self._survives = survives

    async def begin(self, *, alone: bool) -> None:
        self.begun.append(alone)

    def tried(self, call: Call) -> None:
        self.tries.append(call)

    async def record(self, call: Call) -> None:
        self.calls.append(call)
        if self._survives is not None and len(self.calls) >= self._survives:
            raise ClaimLost("the row", "has another holder")

    def by_cycle(self) -> dict[tuple[str, int], Call]:
        return {(call.task, call.run): call for call in self.calls}


@dataclass
class FirmHold:
    """Holds for `checks_max` checks."""

    checks_max: int | None = None
    checks: int = 0
    slots: list[str] = field(default_factory=list)

    def check(self) -> None:
        self.checks += 1
        if self.checks_max is not None and self.checks > self.checks_max:
            raise ClaimLost("the row", "has another holder")

    async def park(self) -> None:
        self.slots.append("parked")

    async def unpark(self) -> None:
        self.slots.append("unparked")


class House:
    """An interpreter with everything it stands on."""

    def __init__(self, clock: ObedientClock | None = None, /, **tools: Tool) -> None:
        numbers = itertools.count(1)
        self.clock = clock or ObedientClock()
        self.payloads = MemoryPayloadStore()
        self.results = memory_results(self.payloads)
        self.credentials = MemoryCredentialStore(self.clock.now, lambda: str(next(numbers)))
        self.journal = MemoryJournal()
        self.hold = FirmHold()
        entropy = (f"seed-{number}" for number in itertools.count(1))
        self.tools = Toolbox(**tools)
        self.interpreter = Interpreter(
            self.tools, self.credentials, self.results, self.clock, lambda: next(entropy)
        )

    async def run(self, job: Job) -> RowResult:
        return await self.interpreter.run(job, self.journal, self.hold)

    async def keep(self, name: str, data: dict[str, Any], type: str = "http") -> None:
        await self.credentials.put(SCOPE, NewCredential(name=name, type=type, data=data))


def echo(call: ToolCall) -> Any:
    """What noop does: its `result`, or that all is well."""
    return call.parameters.get("result", {"status": "ok"})


def fails(kind: str, message: str = "it broke", **told: Any) -> ToolFailed:
    retryable = bool(told.pop("retryable", False))
    return ToolFailed(Failure(kind=kind, message=message, retryable=retryable), **told)


def in_turn(*steps: Any) -> Callable[[ToolCall], Any]:
    """One outcome after the other; an exception is raised. The last one stays."""
    waiting = list(steps)

    def given(_call: ToolCall) -> Any:
        step = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(step, BaseException):
            raise step
        return step

    return given


def counting() -> FunctionTool:
    """Each call gives the next number."""
    numbers = iter(range(1, 1_000))
    return FunctionTool(lambda _: {"n": next(numbers)}, effect=True)


def job(steps: str, more: str = "", **fields: Any) -> Job:
    """A job for the first of these steps. `workload`, `ctx` and `results` are the facts' own."""
    return job_of(playbook(with_steps(steps, more)), **fields)


def job_of(written: Playbook, **fields: Any) -> Job:
    facts = Facts(
        run=RunFacts(execution_id=ExecutionId("77"), path="demo/one"),
        workload=fields.pop("workload", {}),
        ctx=fields.pop("ctx", {}),
        results=fields.pop("results", {}),
    )
    step = next(iter(written.steps.values()))
    fields = {"ctx": facts.ctx, "visit": 1, **fields}
    return Job(scope=SCOPE, playbook=written, step=step, facts=facts, **fields)


def results(**given: Result) -> dict[StepName, Result]:
    return {StepName(name): result for name, result in given.items()}


def one_task(*rules: str, more: str = "") -> str:
    listed = "".join(f"\n          - {rule}" for rule in rules)
    return f"""
- step: s
  tool:
    - name: t
      kind: http
      url: u
      {more}
      spec:
        policy:
          rules:{listed or " []"}
    - {{name: after, kind: noop, result: "{{{{ output.status }}}}"}}
"""
