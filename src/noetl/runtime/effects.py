"""The ledger of effects: which cycle fired, which ran again, and which may have and nobody knows.

A view of the log: calls that were recorded with an effect, what frames counted, and work that
was taken from a holder who may have fired something that it could not record any more.
"""

from typing import Any

import msgspec

from noetl.domain.events import (
    CallDone,
    CallFailed,
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameStarted,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageOpened,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Failure
from noetl.kernel.ids import CommandId, EventId, FrameId, StageId, StepName
from noetl.runtime.effect_entries import EffectEntry, EffectState, Named, listed

IN_DOUBT_KIND = "effect_in_doubt"


class _Place(msgspec.Struct, frozen=True):
    step: StepName
    visit: int
    iteration: int


class _Held(msgspec.Struct):
    """Work in the hands of one holder after another."""

    place: _Place
    name: CommandId | FrameId
    is_claimed: bool = False
    doubt: RecordedEvent | None = None  # its holder was lost then, and nothing recorded since
    doubts: int = 0  # how many holders were

    def lose(self, recorded: RecordedEvent) -> None:
        self.doubt = self.doubt or recorded
        self.doubts += 1

    def settle(self) -> None:
        self.doubt, self.doubts = None, 0


class Ledger:
    """Feed it the events of one execution in order."""

    def __init__(self) -> None:
        self._entries: dict[EventId, EffectEntry] = {}
        self._of_command: dict[CommandId, list[EventId]] = {}
        self._held: dict[_Place, _Held] = {}
        self._places: dict[CommandId | FrameId, _Place] = {}
        self._stages: dict[StageId, StageOpened] = {}

    def add(self, recorded: RecordedEvent) -> None:
        envelope = recorded.envelope
        match recorded.event:
            case CommandIssued() as event:
                self._issue(envelope.command_id, _Place(event.step, event.visit, 0))
            case CallDone() | CallFailed() as event:
                self._call(recorded, event)
            case StageOpened() as event if envelope.stage_id is not None:
                self._stages[envelope.stage_id] = event
            case FrameDispatched() as event:
                self._frame(recorded, event.cursor.get("first", event.ordinal))
            case ShardEnqueued() as event:
                self._frame(recorded, event.iter_index)
            case FrameCommitted(metrics=metrics) | ShardDone(metrics=metrics):
                self._committed(recorded, metrics)
                self._settle(envelope.frame_id)
            case _:
                self._change_hands(recorded)

    def _change_hands(self, recorded: RecordedEvent) -> None:
        envelope = recorded.envelope
        match recorded.event:
            case CommandClaimed():
                self._claim(recorded)
            case CommandCompleted():
                self._settle(envelope.command_id)
            case CommandCancelled() | CommandFailed(error=Failure(kind="lease_lost")):
                self._lose(envelope.command_id, recorded)
            case FrameFailed() | ShardFailed(error=Failure(kind="lease_lost")):
                self._lose(envelope.frame_id, recorded)
            case FrameStarted(cursor={"first": int(first)}):
                self._claimed(envelope.frame_id, first)
            case ShardFailed(metrics=metrics):
                self._committed(recorded, metrics)
                self._release(envelope.frame_id)
            case _:
                pass

    def entries(self) -> list[EffectEntry]:
        doubts = [_doubt(held) for held in self._held.values() if held.doubt is not None]
        return sorted([*self._entries.values(), *doubts], key=lambda entry: int(entry.event_id))

    def _issue(self, command: CommandId | None, place: _Place) -> None:
        """A person's retry of the same visit takes over what succeeded before, and runs what was
        in doubt, which is no less in doubt for that."""
        before = self._held.get(place)
        if before is not None and command is not None:
            self._of_command[command] = self._of_command.get(CommandId(before.name), [])
            self._adopt(command)
            if before.doubt is not None:
                self._entries[before.doubt.envelope.event_id] = _doubt(before)
        self._hold(command, place)

    def _hold(self, name: CommandId | FrameId | None, place: _Place) -> None:
        if name is not None:
            self._places[name] = place
            self._held[place] = _Held(place, name)

    def _settle(self, name: CommandId | FrameId | None) -> None:
        """Its work has ended well, or has been recorded since: nothing of it is in doubt."""
        held = self._find(name)
        if held is not None:
            held.settle()

    def _release(self, name: FrameId | None) -> None:
        """Its holder has told how it failed: whoever tries it again takes it from nobody."""
        held = self._find(name)
        if held is not None:
            held.settle()
            held.is_claimed = False

    def _lose(self, name: CommandId | FrameId | None, recorded: RecordedEvent) -> None:
        """It ended without a word of its holder about what it has fired."""
        held = self._find(name)
        if held is not None and held.is_claimed:
            held.lose(recorded)

    def _find(self, name: CommandId | FrameId | None) -> _Held | None:
        place = None if name is None else self._places.get(name)
        held = None if place is None else self._held.get(place)
        return held if held is not None and held.name == name else None

    def _claim(self, recorded: RecordedEvent) -> None:
        command = recorded.envelope.command_id
        held = self._find(command)
        if held is None or command is None:
            return
        if held.is_claimed:  # by somebody who may have fired something
            held.lose(recorded)
            self._adopt(command)
        held.is_claimed = True

    def _adopt(self, command: CommandId) -> None:
        for event_id in self._of_command.get(command, ()):
            entry = self._entries[event_id]
            self._entries[event_id] = msgspec.structs.replace(entry, adopted=True)

    def _call(self, recorded: RecordedEvent, event: CallDone | CallFailed) -> None:
        envelope = recorded.envelope
        state = _state_of(event)
        if state is None:
            return
        held = self._find(envelope.command_id)
        doubts = 0 if held is None or state == "fired" else held.doubts
        self._settle(envelope.command_id)
        iteration = event.iteration or 0
        place = f"{envelope.execution_id}/{event.step}/{event.visit}/{iteration}"
        self._entries[envelope.event_id] = EffectEntry(
            cycle=f"{place}/{event.task or ''}/{event.run}",
            step=event.step,
            task=event.task,
            run=event.run,
            state=state,
            event_id=envelope.event_id,
            time=envelope.event_time,
            doubts=doubts,
        )
        # What failed is judged anew by whoever comes next: only what succeeded is surely adopted.
        if envelope.command_id is not None and isinstance(event, CallDone):
            self._of_command.setdefault(envelope.command_id, []).append(envelope.event_id)

    def _frame(self, recorded: RecordedEvent, first: int) -> None:
        frame = recorded.envelope.frame_id
        stage = self._stages.get(recorded.envelope.stage_id or StageId(""))
        if frame is None or stage is None:
            return
        if frame not in self._places:
            place = _Place(stage.step, stage.visit, first)
            before = self._held.get(place)
            self._hold(frame, place)
            if before is not None:  # of a loop that is retried: its journal still holds
                self._held[place].doubts = before.doubts
        held = self._find(frame)
        if held is not None:
            if held.is_claimed:
                held.lose(recorded)
            held.is_claimed = True

    def _claimed(self, frame: FrameId | None, first: int) -> None:
        """A cursor's frame has rows from now on; before, it had nothing to fire anything for."""
        held = self._find(frame)
        if held is not None:
            del self._held[held.place]
            place = msgspec.structs.replace(held.place, iteration=first)
            self._hold(frame, place)
            self._held[place].is_claimed = True

    def _committed(self, recorded: RecordedEvent, metrics: dict[str, Any]) -> None:
        """A frame says how many effects its rows fired, and names some that are no plain fires."""
        envelope = recorded.envelope
        place = self._places.get(envelope.frame_id or FrameId(""))
        effects = metrics.get("effects")
        if place is None or not isinstance(effects, dict):
            return
        held = self._find(envelope.frame_id)
        doubts = 0 if held is None else held.doubts
        repeated = Named.of("repeated", metrics, effects)
        fired = Named([], int(effects.get("fired", 0)) - repeated.count)
        found = [
            *listed(fired, _of_place(place, recorded, "fired")),
            *listed(
                Named.of("adopted", metrics, effects),
                msgspec.structs.replace(_of_place(place, recorded, "fired"), adopted=True),
            ),
            *listed(repeated, _of_place(place, recorded, "repeated", doubts)),
            *listed(
                Named.of("in_doubt", metrics, effects),
                _of_place(place, recorded, "in_doubt", doubts),
            ),
        ]
        for number, entry in enumerate(found):
            self._entries[EventId(f"{envelope.event_id}/{number}")] = entry


def _state_of(event: CallDone | CallFailed) -> EffectState | None:
    if isinstance(event, CallFailed) and event.error.kind == IN_DOUBT_KIND:
        return "in_doubt"
    if event.effect is None:
        return None
    return "repeated" if event.effect == "repeated" else "fired"


def _doubt(held: _Held) -> EffectEntry:
    """Of the first effect that is not recorded, whichever task it is."""
    assert held.doubt is not None
    return _of_place(held.place, held.doubt, "in_doubt", held.doubts)


def _of_place(
    place: _Place, recorded: RecordedEvent, state: EffectState, doubts: int = 0
) -> EffectEntry:
    envelope = recorded.envelope
    return EffectEntry(
        cycle=f"{envelope.execution_id}/{place.step}/{place.visit}/{place.iteration}",
        step=place.step,
        state=state,
        event_id=envelope.event_id,
        time=envelope.event_time,
        doubts=doubts,
    )
