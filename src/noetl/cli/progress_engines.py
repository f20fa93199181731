"""Who works on the rows of a stage, told when that changes: an engine's slots or local workers."""

from typing import Any

import msgspec

from noetl.cli.output import count, shown
from noetl.domain.events import FrameDispatched, StageClosed, StageEngine, StageOpened
from noetl.domain.events.envelope import Envelope
from noetl.kernel.ids import StageId, StepName


class StageService(msgspec.Struct, kw_only=True):
    step: StepName
    engine: str
    jobs: int = 0
    slots: int = 0
    has_begun: bool = False  # somebody took work since the last job began
    is_at_work: bool = False  # and that was a slot of the engine

    @property
    def words(self) -> str:
        """`starting spark`, `spark, 4 slots`, `local`: short enough for a line of progress."""
        if self.is_at_work:
            return f"{self.engine}, {count(self.slots, 'slot')}"
        if self.has_begun:
            return "local"
        return f"starting {count(self.slots, 'slot')}" if self.jobs else f"starting {self.engine}"


class EngineNews:
    """Takes events, and says what people want to know once."""

    def __init__(self) -> None:
        self.stages: dict[StageId, StageService] = {}
        self._known_links: set[str] = set()

    def take(self, envelope: Envelope, event: Any) -> str | None:
        stage_id = envelope.stage_id
        if stage_id is None:
            return None
        if isinstance(event, StageOpened):
            if engine := event.frame_policy.get("engine"):
                self.stages[stage_id] = StageService(step=event.step, engine=str(engine))
            return None
        if isinstance(event, StageClosed):
            self.stages.pop(stage_id, None)
            return None
        service = self.stages.get(stage_id)
        if isinstance(event, StageEngine) and service is not None:
            return self._engine(service, event)
        if isinstance(event, FrameDispatched) and service is not None:
            return self._frame(service, event)
        return None

    def _engine(self, service: StageService, event: StageEngine) -> str | None:
        service.jobs += 1
        service.slots, service.has_begun, service.is_at_work = event.slots, False, False
        link = event.ui_url or ""
        if service.jobs == 1 and link in self._known_links:
            return None
        self._known_links.add(link)
        again = "" if service.jobs == 1 else " again, after its slots were lost"
        where = f": {shown(link)}" if link else ""
        slots = count(event.slots, "slot")
        return f"{shown(service.step)} runs on {shown(event.engine)}{again}, {slots}{where}"

    def _frame(self, service: StageService, event: FrameDispatched) -> str | None:
        """Local workers take frames of an engine's stage only while it has no slots."""
        was_at_work = service.is_at_work
        service.is_at_work = event.worker_id.startswith(f"{service.engine}/")
        service.has_begun = True
        if was_at_work and not service.is_at_work:
            engine = shown(service.engine)
            return f"{shown(service.step)}: no slots of {engine} at work; local workers go on"
        return None
