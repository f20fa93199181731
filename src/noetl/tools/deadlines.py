"""Time limits of many calls at once: those of one length share a timer, and end as it finds them.

A timer of its own for each call costs more than everything else that a short call does here.
"""

import asyncio
from types import TracebackType
from typing import Final


class Deadline:
    """As a context, it ends what its task awaits inside of it, with TimeoutError."""

    __slots__ = ("_cancels_before", "_is_over", "_line", "_task", "when")

    def __init__(self, line: "_Line | None") -> None:
        self.when = 0.0  # in the time of the event loop
        self._line = line
        self._is_over = False

    def __enter__(self) -> None:
        if self._line is not None:
            task = asyncio.current_task()
            assert task is not None, "a deadline ends a task"
            self._task, self._cancels_before = task, task.cancelling()
            self._line.enter(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        if self._line is None:
            return
        if not self._is_over:
            self._line.leave(self)
        elif self._task.uncancel() <= self._cancels_before and kind is asyncio.CancelledError:
            raise TimeoutError from error  # else somebody cancelled it as well

    def expire(self) -> None:
        self._is_over = True
        self._task.cancel()


class _Line:
    """Those of one length: who came first is the first to be over."""

    __slots__ = ("_loop", "_seconds", "_timer", "_waiting")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        return self._timer is None

    def enter(self, deadline: Deadline) -> None:
        deadline.when = self._loop.time() + self._seconds
        self._waiting[deadline] = None
        if self._timer is None:
            self._timer = self._loop.call_at(deadline.when, self._fire)

    def leave(self, deadline: Deadline) -> None:
        self._waiting.pop(deadline, None)

    def _fire(self) -> None:
        self._timer, now = None, self._loop.time()
        for deadline in list(self._waiting):
            if deadline.when > now:
                self._timer = self._loop.call_at(deadline.when, self._fire)
                return
            del self._waiting[deadline]
            deadline.expire()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


_NONE: Final = Deadline(None)


class Deadlines:
    """Of one tool, in one event loop."""

    LINES_MAX: Final = 64

    def __init__(self) -> None:
        self._lines: dict[float, _Line] = {}

    def within(self, seconds: float | None) -> Deadline:
        """None: as long as it takes. A limit that has passed already ends the first await."""
        if seconds is None:
            return _NONE
        line = self._lines.get(seconds)
        if line is None:
            line = self._lines[seconds] = _Line(seconds)
            if len(self._lines) > self.LINES_MAX:
                self._forget_idle()
        return Deadline(line)

    def close(self) -> None:
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def _forget_idle(self) -> None:
        for seconds in [each for each, line in self._lines.items() if line.is_idle]:
            del self._lines[seconds]
