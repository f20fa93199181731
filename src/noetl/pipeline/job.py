"""One row of work, and what became of it."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from noetl.domain.events.business_object import BusinessObjectChanged
from noetl.domain.events.values import Failure, Result
from noetl.domain.naming.result_name import ResultName
from noetl.domain.playbook.model import Playbook, Step
from noetl.domain.work import Call, Facts
from noetl.kernel.ids import CommandId, StageId
from noetl.kernel.scope import Scope
from noetl.pipeline.chunks import Passing
from noetl.pipeline.timing import TaskTime
from noetl.templates.places import Frame, Iteration

RowStatus = Literal["ok", "failed", "break"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A step's tasks over one set of names: a whole command, or one row of a frame."""

    scope: Scope
    playbook: Playbook
    step: Step
    visit: int
    facts: Facts
    ctx: Mapping[str, Any]  # the facts' own, and what earlier rows of a sequential loop wrote
    iteration: Iteration | None = None  # None: not in a loop, or a whole frame at once
    frame: Frame | None = None
    journal: Mapping[tuple[str, int], Call] = {}  # by (task, run)
    attempt: int = 1  # which holder of the work this is
    has_predecessor: bool = False  # an earlier holder may have fired what is not recorded
    command_id: CommandId | None = None
    stage_id: StageId | None = None
    visit_attempt: int = 1  # of a row: rises by a person's retry of its loop
    passing: Passing | None = None  # of a step with arcs for chunks

    @property
    def coordinates(self) -> str:
        """`execution/step/visit/iteration`; a cycle adds `/task/run`."""
        place = self.iteration or self.frame  # a whole frame goes by its own number
        index = 0 if place is None else place.index
        return f"{self.facts.run.execution_id}/{self.step.name}/{self.visit}/{index}"

    @property
    def is_in_loop(self) -> bool:
        """Whether it is a row of a loop, or a frame of rows."""
        return self.frame is not None or self.iteration is not None

    @property
    def is_whole_step(self) -> bool:
        """Whether it is a pipeline whose end is the step's: no row of a loop."""
        return self.step.is_pipeline and not self.is_in_loop

    def result_name(self, task: str | None = None, run: int = 1) -> ResultName:
        """What the result of the step, or of one run of a task, is called."""
        frame, row = self.frame, self.iteration
        index = 0 if frame is None or row is None else row.index - frame.base_index
        return ResultName(
            tenant=self.scope.tenant_id,
            project=self.scope.organization_id,
            execution_id=self.facts.run.execution_id,
            step=self.step.name,
            task=task,
            run=run,
            frame=0 if frame is None else frame.index,
            row=index,
            attempt=self.attempt,
            visit=self.visit,
        )


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the row ended. `value` is the tool's own; of a list of tasks it is a PipelineResult, and
    in a loop what that is worth.

    Nothing in it shows a secret that the row has used, and all of it is plain data.
    """

    status: RowStatus
    value: Any = None
    recorded: Result | None = None  # the value as its call was recorded; None: it was not
    parent: str | None = None  # of a whole pipeline: the name of its last task's result
    error: Failure | None = None
    writes: Mapping[str, Any] = {}  # `ctx` paths without the prefix
    emitted: tuple[BusinessObjectChanged, ...] = ()
    calls: tuple[Call, ...] = ()  # those that the journal has not recorded
    times: Mapping[str, TaskTime] = {}  # by task
    fired: int = 0  # effects, the repeated ones included
    adopted: tuple[str, ...] = ()  # effects that were taken from the journal
    repeated: tuple[str, ...] = ()  # cycles that ran again because they were in doubt
    in_doubt: tuple[str, ...] = ()  # cycles that did not run because they were in doubt
    outcomes: Mapping[tuple[str, str], int] = {}  # by state and tool


class Journal(Protocol):
    """Where effects are written down: that they may begin, and how they ended."""

    async def begin(self, *, alone: bool) -> None:
        """Returns when it is durable that this row may have fired something; `alone`: of this row
        only, and not of the rows that come next. Raises ClaimLost."""
        ...

    def tried(self, call: Call) -> None:
        """An effect failed and is tried again; nobody waits until that is durable."""
        ...

    async def record(self, call: Call) -> None:
        """Returns when the call is durable. Raises ClaimLost."""
        ...


class Hold(Protocol):
    """The right to go on: the lease of the work, and the slot that it takes."""

    def check(self) -> None:
        """Raises ClaimLost when the lease has run out by our own clock, or was taken away."""
        ...

    async def park(self) -> None:
        """Give the slot back while waiting for others."""
        ...

    async def unpark(self) -> None:
        """Take a slot again before going on."""
        ...
