"""Stories of a loop over a cursor: frames that claim, start with rows, and come back."""

from typing import Any

from noetl.decider.answers import Decided
from noetl.decider.frames import next_window, ordinal_of
from noetl.domain.events import (
    Event,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    FrameStarted,
)
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import LoopWork, Window
from noetl.domain.execution.windows import window_as_cursor
from noetl.kernel.ids import FrameId
from noetl.kernel.instant import plus
from noetl.testing.story import START, WORKER, Story

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: story, path: tests/story}}
workload: {{frames: 3}}
workflow:
  - step: each
    loop:
      cursor: {{kind: sqlite, claim: "SELECT 1"{cursor}}}
      iterator: row
      spec: {{mode: cursor{spec}}}
    spec: {{policy: {{{policy}}}}}
    tool: {{kind: noop}}
    next: {{arcs: [{{step: after, when: "{{{{ event.name == 'loop.done' }}}}"}}]}}
  - {{step: after, tool: {{kind: noop}}}}
"""


class CursorStory(Story):
    def __init__(
        self, spec: str = "", cursor: str = "", *, policy: str = "", **payload: Any
    ) -> None:
        super().__init__(TEXT.format(spec=spec, cursor=cursor, policy=policy), **payload)
        self._frames = 0

    @property
    def work(self) -> LoopWork:
        return self.loop("each")

    @property
    def may_claim(self) -> bool:
        return next_window(self.work) is not None

    def dispatch(self) -> FrameId:
        window = next_window(self.work)
        assert window is not None, "the loop hands out nothing"
        self._frames += 1
        frame = FrameId(f"frame-{self._frames}")
        self._say(frame, _dispatched(ordinal_of(self.work, window), window))
        return frame

    def start(self, frame: FrameId, rows: list[Any]) -> None:
        window = Window(self.work.next_index, len(rows))
        started = FrameStarted(
            worker_id=WORKER,
            transaction_id=f"transaction of {frame}",
            rows=rows,
            cursor=window_as_cursor(window),
        )
        self._say(frame, started)

    def commit_rows(self, frame: FrameId, values: list[Any], **further: Any) -> None:
        first = self.work.out[frame].first
        outcomes = [
            {"index": first + at, "status": "ok", "value": value} for at, value in enumerate(values)
        ]
        count = len(values)
        done = FrameCommitted(worker_id=WORKER, row_count=count, outcomes=outcomes, **further)
        self._say(frame, done)

    def come_back_empty(self, frame: FrameId) -> None:
        self.commit_rows(frame, [])

    def lose(self, frame: FrameId) -> None:
        self._say(frame, FrameAbandoned(previous_owner=WORKER, previous_attempts=1))

    def dispatch_again(self, frame: FrameId) -> None:
        row = self.state.frames[frame]
        dispatched = _dispatched(row.ordinal, self.work.out[frame], row.attempts + 1)
        self._say(frame, dispatched)

    def fail_frame(self, frame: FrameId) -> None:
        error = Failure(kind="connection", message="no database")
        self._say(frame, FrameFailed(error=error, worker_id=WORKER))

    def _say(self, frame: FrameId, event: Event) -> None:
        self.tell(Decided(event=event, frame_id=frame, loop_id=self.work.loop_id))


def _dispatched(ordinal: int, window: Window, attempt: int = 1) -> FrameDispatched:
    return FrameDispatched(
        ordinal=ordinal,
        worker_id=WORKER,
        lease_until=plus(START, seconds=60),
        cursor=window_as_cursor(window),
        attempt=attempt,
    )
