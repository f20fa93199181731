"""Facts about one visit of a step, and about the calls that its tasks made."""

from typing import ClassVar

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
    result: Result | None = None
    error: Failure | None = None
    arcs: tuple[StepName, ...] = ()


class StepSkipped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "step.skipped"
    VERSION: ClassVar[int] = 1

    step: StepName
    visit: Int64 = 1
    reason: str | None = None


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
