"""One execution in memory: its state, its place in the log, and what its open work may see."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from noetl.decider.plan import Plan
from noetl.decider.view import facts_of
from noetl.domain.events import CommandIssued, Event, StageOpened
from noetl.domain.events.envelope import Envelope, Source
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.rows import TERMINAL
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import EMPTY_STREAM, StoredEvent, StreamHead
from noetl.domain.naming.locator import Locality
from noetl.domain.work import Facts
from noetl.kernel.ids import CommandId, ExecutionId, LoopId, StepName
from noetl.runtime.holders import Holders
from noetl.runtime.placing import place_in
from noetl.wire.codec import Sealer, open_stored

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Running:
    """Changed by one turn at a time. What a turn folded and could not append is thrown away."""

    def __init__(self, plan: Plan, source: Source) -> None:
        self.plan = plan
        self.source = source
        self.sealer = Sealer(source)
        self.head = EMPTY_STREAM
        self.accumulator = Accumulator(ExecutionState())
        self.facts: dict[CommandId | LoopId, Facts] = {}
        self.void: set[CommandId] = set()  # commands whose holder is known to be gone
        self.holders = Holders()
        self.places: dict[StepName, Locality] = {}  # where steps ran last, if their workers told
        self.recorded_version = 0  # the state may be ahead of the log while a turn is appended

    @property
    def execution_id(self) -> ExecutionId:
        return self.source.execution_id

    @property
    def state(self) -> ExecutionState:
        return self.accumulator.state

    @property
    def is_over(self) -> bool:
        return self.state.execution.status in TERMINAL

    @property
    def is_recorded(self) -> bool:
        """Whether the log holds everything that this state says."""
        return self.head.version == self.recorded_version

    def apply(
        self, envelope: Envelope, event: Event, annotations: Mapping[str, Any] = NOTHING
    ) -> None:
        """Fold one event. Work sees the execution as it was when the work was issued."""
        evolve(self.accumulator, envelope, event)
        self.head = StreamHead(envelope.stream_version, envelope.event_id)
        self.holders.hear(envelope, event)
        if annotations and envelope.command_id in self.state.commands:
            place = place_in(annotations)
            if place is not None:
                self.places[self.state.commands[envelope.command_id].step] = place
        if isinstance(event, CommandIssued) and envelope.command_id is not None:
            self.facts[envelope.command_id] = facts_of(self.state)
        elif isinstance(event, StageOpened) and event.loop_id is not None:
            self.facts[event.loop_id] = facts_of(self.state)

    def begin_at(self, state: ExecutionState) -> None:
        """Stand on a state that was folded elsewhere, instead of on the first event."""
        self.accumulator = Accumulator(state)
        last = state.execution.last_event_id
        self.head = StreamHead(state.stream_version, last)
        self.recorded_version = state.stream_version

    def apply_stored(self, page: Iterable[StoredEvent]) -> None:
        for stored in page:
            recorded = open_stored(stored)
            self.apply(recorded.envelope, recorded.event, recorded.annotations)
        self.recorded_version = self.head.version

    def forget_ended_work(self) -> None:
        """Facts of work that is over are of no use to anybody."""
        state = self.state
        for key in [key for key in self.facts if key not in state.commands]:
            if key not in state.loop_work:
                del self.facts[key]
        self.void &= state.commands.keys()
        self.holders.forget_all_but(state.frames)
