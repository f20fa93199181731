"""What the author asked for, after parsing. No YAML here."""

from typing import Any, Literal

import msgspec

from noetl.domain.events.loop import LoopMode
from noetl.domain.playbook.loop import Loop
from noetl.domain.playbook.task import Task, WorkbookTask
from noetl.domain.playbook.values import Assignment, Condition, Emit, Output, Seconds
from noetl.kernel.ids import StepName

START = StepName("start")
END = StepName("end")
"""An arc to `end` needs no step of that name: it means that this branch is complete."""

RouteMode = Literal["exclusive", "inclusive"]
NoMatch = Literal["complete", "quiet"]
FailureMode = Literal["fail_fast", "continue"]

PARTIAL = "call.partial"
"""What an arc answers to that is followed by every chunk of a growing result."""

ARC_EVENTS = (
    "call.done",
    "call.error",
    PARTIAL,
    "loop.done",
    "step.exit",
    "step.done",
    "step.failed",
)


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    path: str | None = None  # the key in the catalogue
    description: str | None = None
    version: str | None = None
    tags: tuple[str, ...] = ()
    labels: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class Executor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    profile: Literal["auto", "local", "distributed"] = "auto"
    version: str | None = None
    requires: dict[str, Any] = {}
    entry_step: StepName | None = None  # None: `start`, else the first
    final_step: StepName | None = None
    no_next_is_error: bool = False
    loop_mode: LoopMode | None = None  # for loops that name no mode
    policy: dict[str, Any] = {}


class KeychainEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A secret that is looked up when the execution starts, as `{{ keychain.<name>.<field> }}`."""

    name: str
    kind: str
    scope: str | None = None
    auto_renew: bool = False
    fields: dict[str, Any] = {}


class Arc(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: StepName
    when: Condition = True
    set: tuple[Assignment, ...] = ()
    on: str | None = None  # None: whatever ended the step


class Router(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exclusive: the first true arc. Inclusive: all of them."""

    arcs: tuple[Arc, ...] = ()
    mode: RouteMode = "exclusive"
    on_no_match: NoMatch = "complete"


class AdmitRule(msgspec.Struct, frozen=True, kw_only=True):
    when: Condition
    allow: bool


class StepPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    admit: tuple[AdmitRule, ...] = ()
    failure: FailureMode = "fail_fast"
    is_failure_given: bool = False  # kept of cursors, which go on unless their author said more
    lifecycle: dict[str, Any] = {}
    emit: dict[str, Any] = {}


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step without tasks runs nothing and only routes."""

    name: StepName
    tasks: tuple[Task, ...] = ()
    is_pipeline: bool = False  # a list of tasks; a single tool's result is the step's result
    description: str | None = None
    input: dict[str, Any] = {}
    loop: Loop | None = None
    set: tuple[Assignment, ...] = ()
    output: Output = Output()
    emit: tuple[Emit, ...] = ()
    next: Router = Router()
    policy: StepPolicy = StepPolicy()
    timeout: Seconds | None = None

    def task(self, name: str) -> Task | None:
        return next((task for task in self.tasks if task.name == name), None)


class Playbook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Steps are in the order in which they were written."""

    metadata: Metadata
    steps: dict[StepName, Step]
    api_version: str
    workload: dict[str, Any] = {}
    keychain: tuple[KeychainEntry, ...] = ()
    workbook: dict[str, WorkbookTask] = {}
    executor: Executor = Executor()
    exposed: dict[str, Any] = {}  # maps at the root that are only names for templates
    aliases: dict[str, StepName] = {}  # `output: {as: …}`: other names for results of steps
    before: dict[StepName, StepName] = {}  # of a step with one way in: the step that leads there

    @property
    def entry(self) -> StepName:
        """The step that runs first: the one named by the executor, else `start`, else the first."""
        named = self.executor.entry_step
        if named is not None and named in self.steps:
            return named
        return START if START in self.steps else next(iter(self.steps))
