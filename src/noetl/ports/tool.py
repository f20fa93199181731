"""What a task can do to the world."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from noetl.domain.credential import OpenCredential
from noetl.domain.events.values import Failure, ResultReference
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import CommandId, ExecutionId, StageId, StepName
from noetl.kernel.scope import Scope

PassOn = Callable[[Any, bool], Awaitable[None]]
"""Takes a chunk of a result that is still growing, and whether more follow. Make the next one when
it returns."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle of one task, rendered and ready. It may hold secrets: never record or log it."""

    kind: str
    task: str
    step: StepName
    execution_id: ExecutionId
    scope: Scope
    parameters: dict[str, Any]  # under their main spellings
    input: dict[str, Any] = {}  # the step's input under the task's own
    credentials: dict[str, OpenCredential] = {}  # by alias; a single one is under ""
    context: Mapping[str, Any] = {}  # what a program may look at: workload, ctx, steps, iter, …
    idempotency_key: str = ""  # the cycle's name: the same whenever this cycle runs again
    command_id: CommandId | None = None  # whose work this is: a command's, or
    stage_id: StageId | None = None  # a row's of a stage
    timeout_seconds: float | None = None
    attempt: int = 1  # rises with every retry by a rule; the idempotency key does not
    visit_attempt: int = 1  # of a row: rises by a person's retry of its loop
    result: str = ""  # its name, for tools that store their results themselves
    is_repeatable: bool = True  # False: `effects: at_most_once`
    pass_on: PassOn | None = None  # None: nobody waits for chunks

    @property
    def credential(self) -> OpenCredential | None:
        """The only one, or the first."""
        return next(iter(self.credentials.values()), None)


class ToolTable(msgspec.Struct, frozen=True, kw_only=True):
    """A large result as a file of the pinned form, which is the whole content: what stands around
    the rows is in it. Whoever gets the result removes the file."""

    path: Path
    row_count: int
    byte_length: int
    schema_digest: str


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave. `value` is plain data: what JSON can carry; a table is given instead."""

    value: Any = None
    is_checked: bool = False  # the tool has made sure of that; else whoever gets it looks
    table: ToolTable | None = None
    stored: ResultReference | None = None  # a table in parts, which the tool stored by the name
    http: dict[str, Any] | None = None  # status, headers
    pg: dict[str, Any] | None = None
    printed: str = ""  # the last part of what the author's code wrote for people; not recorded


class ToolFailed(NoETLError):
    """A call failed in a way that its author can act on."""

    code = "tool_failed"

    def __init__(
        self,
        failure: Failure,
        *,
        value: Any = None,
        http: dict[str, Any] | None = None,
        pg: dict[str, Any] | None = None,
        py: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.value = value
        self.http = http
        self.pg = pg
        self.py = py


class Tool(Protocol):
    """Promises every tool keeps (each has a test of the same number):

    T1  a call returns plain data or raises ToolFailed with a kind of the vocabulary; no error of
        a driver gets out
    T2  the idempotency key goes to every target that can honour one
    T3  a cancelled or timed-out call leaves nothing running
    T4  a failure says what to do and holds no secret of the call
    T5  calls run side by side and do not disturb each other

    One with `takes_tables = True` gets large stored tables as `TableRows`, with the reference to
    the file; to every other they are lists.
    """

    @property
    def waits(self) -> bool:
        """Its calls mostly wait for others, so they hold no slot of the worker."""
        ...

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        """Whether running the call twice may do something twice."""
        ...

    async def run(self, call: ToolCall) -> ToolResult: ...

    async def close(self) -> None: ...
