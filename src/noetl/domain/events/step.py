"""Facts about one visit of a step, and about the calls that its tasks made."""

from typing import Any, ClassVar

import msgspec

from noetl.domain.events.values import Failure, Int64, Result
from noetl.kernel.ids import StepName


class StepEntered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "step.enter"
    VERSION: ClassVar[int] = 1

    step: StepName
    visit: Int64 = 1  # loops over arcs enter a step many times
    arrived_from: tuple[StepName, ...] = ()


class StepExited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The step is over. The arcs it took are recorded, so replay evaluates no template."""

    TYPE: ClassVar[str] = "step.exit"
    VERSION: ClassVar[int] = 1

    step: StepName
    status: str
    visit: Int64 = 1
    result: Result | None = None  # None: as its command or its loop reported it
    error: Failure | None = None
    arcs: tuple[StepName, ...] = ()  # each puts a token on its target
    writes: dict[str, Any] = {}  # what `set` of the step and of its arcs wrote to `ctx`
    handled: bool = False  # a failure that does not fail the execution
    quiet: bool = False  # this branch ends here and says nothing about the whole


class StepSkipped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "step.skipped"
    VERSION: ClassVar[int] = 1

    step: StepName
    visit: Int64 = 1
    reason: str | None = None
    arrived_from: tuple[StepName, ...] = ()  # none named: whatever had arrived
    arcs: tuple[StepName, ...] = ()
    writes: dict[str, Any] = {}  # what `set` of the arcs wrote to `ctx`


class CallDone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task of a pipeline finished; recorded before the same row goes on to its next effect."""

    TYPE: ClassVar[str] = "call.done"
    VERSION: ClassVar[int] = 1

    step: StepName
    result: Result
    visit: Int64 = 1
    iteration: Int64 | None = None
    task: str | None = None
    run: Int64 = 1  # a jump back is a new run, a retry is not
    writes: dict[str, Any] = {}
    effect: str | None = None  # fired or repeated; None: nothing that could happen twice
    tries: Int64 = 1
    duration_ms: Int64 | None = None


class CallFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "call.error"
    VERSION: ClassVar[int] = 1

    step: StepName
    error: Failure
    visit: Int64 = 1
    iteration: Int64 | None = None
    task: str | None = None
    run: Int64 = 1
    writes: dict[str, Any] = {}
    effect: str | None = None
    tries: Int64 = 1
    duration_ms: Int64 | None = None


class CallPartial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One chunk of a result that is still growing. It never completes the step by itself."""

    TYPE: ClassVar[str] = "call.partial"
    VERSION: ClassVar[int] = 1

    step: StepName
    chunk_index: Int64
    has_more: bool
    result: Result
    visit: Int64 = 1
    iteration: Int64 | None = None
    task: str | None = None
    run: Int64 = 1


class ChunkPassed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chunk was given to the steps behind its arcs, or to none when no arc held."""

    TYPE: ClassVar[str] = "chunk.passed"
    VERSION: ClassVar[int] = 1

    step: StepName
    chunk_index: Int64
    visit: Int64 = 1
    task: str | None = None
    run: Int64 = 1
    arcs: tuple[StepName, ...] = ()  # each puts a token on its target
    writes: dict[str, Any] = {}  # what `set` of the arcs wrote to `ctx`
