"""Everything that one append carries: the facts that woke an execution, and what follows."""

from collections.abc import Callable, Sequence

from noetl.decider.answers import Decided
from noetl.domain.events import Event, FanoutStarted, StageClosed, StageOpened
from noetl.domain.events.envelope import Draft
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import APPEND_EVENTS_MAX, Append, SealedEvent
from noetl.kernel.errors import EventInvalid
from noetl.kernel.ids import CommandId, EventId, FrameId, LoopId, StageId
from noetl.kernel.instant import Instant
from noetl.runtime.running import Running

EVENTS_AIMED = APPEND_EVENTS_MAX - 100
"""Deciding stops here; the rest follows in another append."""


class TurnFull(Exception):
    """What was to be added does not fit any more, and will fit into the next turn."""


class Turn:
    """Events are sealed and folded as they are added, so that the next question sees them."""

    def __init__(self, running: Running, now: Instant, new_id: Callable[[], str]) -> None:
        self.running = running
        self.now = now
        self.events: list[SealedEvent] = []
        self._new_id = new_id
        self._first_version = running.head.version
        self._cause: EventId | None = None
        self._undoing: list[Callable[[], None]] = []

    @property
    def state(self) -> ExecutionState:
        return self.running.state

    @property
    def is_full(self) -> bool:
        return len(self.events) >= EVENTS_AIMED

    @property
    def room(self) -> int:
        """Events that an append can still take."""
        return APPEND_EVENTS_MAX - len(self.events)

    def new_id(self) -> str:
        return self._new_id()

    def if_lost(self, undo: Callable[[], None]) -> None:
        """What was done besides adding events, and must not have happened when they get lost."""
        self._undoing.append(undo)

    def undo(self) -> None:
        """The turn could not be appended."""
        for undo in self._undoing:
            undo()
        self._undoing.clear()

    def add(self, *happenings: Decided) -> None:
        """All of them or none: one that the log must not hold is refused before any is folded.

        Raises TurnFull.
        """
        if len(happenings) > self.room:
            raise self._refusal(len(happenings))
        drafts = [self._draft(happening) for happening in happenings]
        running = self.running
        sealed = running.sealer.seal(drafts, running.head)
        for event in sealed:
            running.apply(event.envelope, event.event, event.annotations)
        self.events += sealed

    def decide(self, decided: Sequence[Decided]) -> None:
        """Decisions name the last fact before them as their cause; those that do not fit follow."""
        if self._cause is None and self.events:
            self._cause = self.events[-1].envelope.event_id
        self.add(*fitting(decided, self.room))

    def append(self) -> Append:
        running = self.running
        return Append(
            running.source.scope, running.execution_id, self._first_version, tuple(self.events)
        )

    def _refusal(self, count: int) -> Exception:
        if self.events:
            return TurnFull()
        return EventInvalid(
            f"{count} events at once are too many, at most {APPEND_EVENTS_MAX} can be recorded"
            " together; let the step do less in one go, e.g. by a loop over its items"
        )

    def _draft(self, happening: Decided) -> Draft:
        return Draft(
            event_id=EventId(self._new_id()),
            event=happening.event,
            event_time=self.now,
            causation_id=self._cause,
            command_id=happening.command_id,
            stage_id=self._stage(happening),
            frame_id=happening.frame_id,
            meta=happening.meta,
            annotations=happening.annotations,
        )

    def _stage(self, happening: Decided) -> StageId | None:
        if happening.stage_id is not None:
            return happening.stage_id
        if isinstance(happening.event, StageOpened):
            return StageId(self._new_id())
        if happening.loop_id is not None:
            return self.stage_of_loop(happening.loop_id)
        if happening.frame_id is None:
            return None
        frame = self.state.frames.get(happening.frame_id)
        return None if frame is None else frame.stage_id

    def stage_of_loop(self, loop: LoopId) -> StageId | None:
        for stage in self.state.stages.values():
            if stage.loop_id == loop:
                return stage.stage_id
        return None


def about_command(event: Event, command: CommandId) -> Decided:
    return Decided(event=event, command_id=command)


def about_frame(event: Event, frame: FrameId, loop: LoopId | None = None) -> Decided:
    return Decided(event=event, frame_id=frame, loop_id=loop)


def fitting(happenings: Sequence[Decided], room: int) -> Sequence[Decided]:
    """As many as there is room for. A stage begins and ends together with its loop."""
    if len(happenings) <= room:
        return happenings
    inseparable = StageOpened | StageClosed | FanoutStarted
    while room > 0 and isinstance(happenings[room].event, inseparable):
        room -= 1
    return happenings[:room]
