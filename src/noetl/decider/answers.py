"""What the decider can say: events to append, or what it has to have first."""

from typing import Any

import msgspec

from noetl.domain.events import Event
from noetl.kernel.ids import CommandId, FrameId, LoopId, StageId
from noetl.templates.render import Needs


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """An event by its coordinates; the coordinator gives new stages their ids."""

    event: Event
    command_id: CommandId | None = None
    loop_id: LoopId | None = None  # of the stage that the event is about
    frame_id: FrameId | None = None
    stage_id: StageId | None = None  # of a stage that is known by its id
    meta: dict[str, Any] = {}
    annotations: dict[str, Any] = {}  # kept, never checksummed


class StoreFirst(msgspec.Struct, frozen=True):
    """Items that are too many for an event: put them into the payload store, then ask again."""

    loop_id: LoopId
    items: list[Any]


class AssembleFirst(msgspec.Struct, frozen=True):
    """A finished loop whose results lie in several places: put them together, then ask again."""

    loop_id: LoopId


Missing = Needs | StoreFirst | AssembleFirst


class Incomplete(Exception):
    """Unwinds a decision that cannot be made yet; `decide` turns it into its answer."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(missing)
        self.missing = missing
