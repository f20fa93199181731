"""One task of a pipeline: a tool, its parameters, and the rules that say what its outcome means."""

from typing import Any, ClassVar, Literal

import msgspec

from noetl.domain.playbook.values import (
    Assignment,
    Condition,
    Count,
    Credential,
    Emit,
    Output,
    Seconds,
)

Backoff = Literal["none", "fixed", "linear", "exponential"]
Effects = Literal["none", "at_most_once"]

RETRY_ATTEMPTS = 3
RETRY_DELAY_SECONDS = 1.0
RETRY_MULTIPLIER = 2.0
PREVIOUS_TASK = ("previous", "prev")
"""Jump targets that are not names."""


class Continue(msgspec.Struct, frozen=True, tag=True):
    """Go on with the next task; an error is swallowed."""

    WORD: ClassVar[str] = "continue"


class Retry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Run the same task again. Without a word about backoff, the delay is the same each time."""

    WORD: ClassVar[str] = "retry"

    attempts: Count = RETRY_ATTEMPTS  # in total, the first one included
    backoff: Backoff = "fixed"
    delay: Seconds = RETRY_DELAY_SECONDS
    delay_max: Seconds | None = None  # None: no upper bound
    jitter: Condition | float = False
    multiplier: float | str = RETRY_MULTIPLIER


class Jump(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Go to another task of the same pipeline, forwards or backwards."""

    WORD: ClassVar[str] = "jump"

    to: str


class Break(msgspec.Struct, frozen=True, tag=True):
    """Stop the pipeline; the step succeeds."""

    WORD: ClassVar[str] = "break"


class Fail(msgspec.Struct, frozen=True, tag=True):
    """Stop the pipeline; the step fails."""

    WORD: ClassVar[str] = "fail"


Action = Continue | Retry | Jump | Break | Fail


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first rule that matches decides. Its `set` is applied before its action."""

    action: Action
    when: Condition = True  # `else` is a rule that always matches
    set: tuple[Assignment, ...] = ()


class TaskPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """No rule matches: a result goes on, an error fails."""

    rules: tuple[Rule, ...] = ()
    mode: Literal["exclusive"] = "exclusive"
    on_unmatched: str | None = None  # read and kept; no engine acts on it


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`parameters` are the tool's own keys as written, each under its main spelling."""

    name: str
    kind: str
    parameters: dict[str, Any] = {}
    input: dict[str, Any] = {}
    auth: tuple[Credential, ...] = ()
    set: tuple[Assignment, ...] = ()
    policy: TaskPolicy = TaskPolicy()
    output: Output | None = None  # None: the step's
    emit: tuple[Emit, ...] = ()
    effects: Effects | None = None  # None: the tool decides
    timeout: Seconds | None = None


class WorkbookTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task that steps use by name, with its inputs as defaults."""

    task: Task
    description: str | None = None
    expectations: dict[str, Any] = {}  # `assert`: for people, never checked
