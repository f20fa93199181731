"""Values that several parts of a playbook carry: assignments, conditions, credentials, results.

Text that holds `{{` or `{%` is a template. It is kept as the author wrote it and rendered where the
work is done; so is every field whose type allows text beside a number.
"""

from typing import Any, Literal

import msgspec

Condition = str | bool
"""What decides: a template, or a plain yes or no."""

Count = int | str
"""A whole number, or the template that will give one."""

Seconds = float | str
"""A length of time, or the template that will give one."""

SetScope = Literal["ctx", "iter", "step", "task"]
"""Where a name is written: for the execution, one iteration, the step, or the tasks that follow."""

OutputScope = Literal["step", "execution", "workflow", "permanent"]
"""How long a stored result lives."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """`set: {ctx.total: "{{ output.n }}"}`: one name that gets a value."""

    scope: SetScope
    name: str  # may have dots: `ctx.totals.paid`
    value: Any


class Credential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored credential by name; the worker looks it up, so no secret is ever in a playbook."""

    name: str | None = None  # None: everything is said by `options`
    alias: str | None = None  # what the tool calls it when it takes several
    type: str | None = None
    options: dict[str, Any] = {}


class Emit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of a business object that the log should remember."""

    object: str
    id: Any
    status: Any = None
    attributes: Any = {}


class ResultStore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a large result goes."""

    kind: str = "auto"
    bucket: str | None = None
    prefix: str | None = None
    ttl: str | float | None = None
    compression: str | None = None
    credential: str | None = None


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a large result that stays at hand."""

    path: str
    name: str


class Output(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a result, and where."""

    store: ResultStore = ResultStore()
    select: tuple[Selection, ...] = ()
    accumulate: dict[str, Any] = {}
    inline_bytes_max: Count | None = None
    preview_bytes_max: Count | None = None
    scope: OutputScope = "execution"
    name: str | None = None  # None: the step's name
