"""A playbook decided without a log or a worker: tell it how work ends, see what follows.

story = Story(TEXT)
story.complete("fetch", {"rows": 3})
assert story.open == ["store"]
"""

from typing import Any

from noetl.decider.answers import Decided
from noetl.decider.decide import decide
from noetl.decider.frames import next_window, ordinal_of
from noetl.decider.plan import plan_of
from noetl.decider.view import VISITS_MAX, View
from noetl.domain.events import (
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    Event,
    FrameCommitted,
    FrameDispatched,
    PlaybookInitialized,
    StageOpened,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.values import Failure
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.rows import CommandRow
from noetl.domain.execution.state import ExecutionState, LoopWork
from noetl.domain.execution.windows import window_as_cursor
from noetl.domain.log import EMPTY_STREAM, StreamHead
from noetl.dsl.check import check
from noetl.kernel.ids import EventId, FrameId, StageId, WorkerId
from noetl.kernel.instant import Instant, plus
from noetl.templates.recorded import inline_result
from noetl.testing.histories import execution_ids, source_of
from noetl.wire.codec import seal

WORKER = WorkerId("worker")
START = Instant("2026-01-01T00:00:00.000000Z")
DECISIONS_MAX = 10_000


class Story:
    visits_max = VISITS_MAX

    def __init__(self, text: str, **payload: Any) -> None:
        checked = check(text)
        if checked.playbook is None:
            raise ValueError("\n".join(str(problem) for problem in checked.problems))
        (execution, *_) = execution_ids(1)
        self.plan = plan_of(checked.playbook, checked.digest)
        self.events: list[Event] = []
        self._source = source_of(execution)
        self._head: StreamHead = EMPTY_STREAM
        self._accumulator = Accumulator(ExecutionState())
        self._ids = iter(range(264905529753604096, 264905529753604096 + 1_000_000))
        first = PlaybookInitialized(
            path=checked.playbook.metadata.path or checked.playbook.metadata.name,
            playbook_digest=checked.digest,
            workload={**checked.playbook.workload, **payload},
            payload=payload,
        )
        self.tell(Decided(event=first))

    @property
    def state(self) -> ExecutionState:
        return self._accumulator.state

    @property
    def status(self) -> str:
        return self.state.execution.status

    @property
    def open(self) -> list[str]:
        """Steps whose command waits for its end, in the order of issuing."""
        return [row.step for row in self.state.commands.values()]

    def of(self, event_type: str) -> list[Any]:
        return [event for event in self.events if event.TYPE == event_type]

    def tell(self, *happenings: Decided) -> None:
        """Facts from outside, and everything that follows from them."""
        for happening in happenings:
            self._apply(happening)
        for _ in range(DECISIONS_MAX):
            view = View(plan=self.plan, state=self.state, visits_max=self.visits_max)
            decided = decide(view)
            if not isinstance(decided, list):
                raise TypeError(f"the decision needs {decided}")
            if not decided:
                return
            for each in decided:
                self._apply(each)
        raise RecursionError("the decisions never end")

    def complete(self, step: str, value: Any = None, **writes: Any) -> None:
        row = self._claimed(step)
        completed = CommandCompleted(
            claim=1, worker_id=WORKER, result=inline_result(value), writes=writes
        )
        self.tell(Decided(event=completed, command_id=row.command_id))

    def fail(self, step: str, kind: str = "unknown", **detail: Any) -> None:
        row = self._claimed(step)
        error = Failure(kind=kind, message=f"{step} failed", detail=detail)
        failed = CommandFailed(error=error, claim=1, worker_id=WORKER)
        self.tell(Decided(event=failed, command_id=row.command_id))

    def commit(self, step: str, values: list[Any], **committed: Any) -> None:
        """The next frame of the step's loop, with the values of its rows."""
        work = self.loop(step)
        window = next_window(work)
        if window is None:
            raise ValueError(f"the loop of {step} hands out nothing more")
        frame = FrameId(str(next(self._ids)))
        dispatched = FrameDispatched(
            ordinal=ordinal_of(work, window),
            worker_id=WORKER,
            lease_until=plus(START, seconds=60),
            cursor=window_as_cursor(window),
        )
        self._apply(Decided(event=dispatched, frame_id=frame, loop_id=work.loop_id))
        outcomes = [
            {"index": window.first + at, "status": "ok", "value": value}
            for at, value in enumerate(values)
        ]
        done = FrameCommitted(
            worker_id=WORKER, row_count=len(values), outcomes=outcomes, **committed
        )
        self.tell(Decided(event=done, frame_id=frame, loop_id=work.loop_id))

    def loop(self, step: str) -> LoopWork:
        return next(work for work in self.state.loop_work.values() if work.step == step)

    def _claimed(self, step: str) -> CommandRow:
        row = next(row for row in self.state.commands.values() if row.step == step)
        claimed = CommandClaimed(worker_id=WORKER, claim=1, lease_until=plus(START, seconds=60))
        self._apply(Decided(event=claimed, command_id=row.command_id))
        return row

    def _apply(self, happening: Decided) -> None:
        draft = Draft(
            event_id=EventId(str(next(self._ids))),
            event=happening.event,
            event_time=plus(START, seconds=len(self.events)),
            command_id=happening.command_id,
            stage_id=self._stage(happening),
            frame_id=happening.frame_id,
        )
        (sealed,) = seal([draft], self._head, self._source)
        evolve(self._accumulator, sealed.envelope, sealed.event)
        self._head = StreamHead(sealed.envelope.stream_version, sealed.envelope.event_id)
        self.events.append(sealed.event)

    def _stage(self, happening: Decided) -> StageId | None:
        if isinstance(happening.event, StageOpened):
            return StageId(str(next(self._ids)))
        work = self.state.loop_work.get(happening.loop_id) if happening.loop_id else None
        if work is not None:
            return work.stage_id
        stages = self.state.stages.values()
        return next((row.stage_id for row in stages if row.loop_id == happening.loop_id), None)
