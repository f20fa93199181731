"""Facts about a stage: the work of one loop, fan-out or reduce, handed out in frames."""

from typing import Any, ClassVar, Literal

import msgspec

from noetl.domain.events.values import Int64, ResultReference
from noetl.kernel.ids import LoopId, StageId, StepName

StageKind = Literal["loop", "fanout", "reduce"]


class StageOpened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stage's id is in the envelope (`stage_id`)."""

    TYPE: ClassVar[str] = "stage.opened"
    VERSION: ClassVar[int] = 1

    stage_kind: StageKind
    step: StepName
    visit: Int64 = 1
    loop_id: LoopId | None = None
    parent_stage_id: StageId | None = None
    dsl_ref: str | None = None
    frame_policy: dict[str, Any] = {}


class StageEngine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An engine is about to work on the stage. Recorded before its job starts, so that whoever
    comes next knows what to look for."""

    TYPE: ClassVar[str] = "stage.engine"
    VERSION: ClassVar[int] = 1

    engine: str
    session_id: str
    tag: str
    slots: Int64
    ui_url: str | None = None


class StageClosed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    TYPE: ClassVar[str] = "stage.closed"
    VERSION: ClassVar[int] = 1

    status: str
    output_ref: ResultReference | None = None  # the stage's dataset
