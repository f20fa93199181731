"""Which step wrote a variable of an execution, and when: told from the events that write."""

import msgspec

from noetl.domain.events import (
    ChunkPassed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    FrameCommitted,
    LoopDone,
    StageOpened,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import StepName
from noetl.kernel.instant import Instant


class Written(msgspec.Struct, frozen=True):
    """The newest write of a variable; a part of it counts as the whole."""

    step: StepName | None
    time: Instant


class Writers:
    """Goes through a log in order."""

    def __init__(self) -> None:
        self.newest: dict[str, Written] = {}
        self._steps: dict[str, StepName] = {}  # of commands and stages, by their ids

    def add(self, recorded: RecordedEvent) -> None:
        envelope = recorded.envelope
        match recorded.event:
            case CommandIssued(step=step):
                self._steps[envelope.command_id or ""] = step
            case StageOpened(step=step):
                self._steps[envelope.stage_id or ""] = step
            case CommandCompleted(writes=writes) | CommandFailed(writes=writes):
                self._write(writes, self._steps.pop(envelope.command_id or "", None), recorded)
            case FrameCommitted(writes=writes):
                self._write(writes, self._steps.get(envelope.stage_id or ""), recorded)
            case (
                StepExited(step=step, writes=writes)
                | StepSkipped(step=step, writes=writes)
                | ChunkPassed(step=step, writes=writes)
                | LoopDone(step=step, writes=writes)
            ):
                self._write(writes, step, recorded)

    def _write(
        self, writes: dict[str, object], step: StepName | None, recorded: RecordedEvent
    ) -> None:
        for path in writes:
            name = path.partition(".")[0]
            self.newest[name] = Written(step, recorded.envelope.event_time)
