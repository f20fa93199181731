"""Rows that wait to write the same SQLite file, handed to a thread together.

What came while one group was written is the next. Whoever is cancelled before its turn leaves; who
is cancelled in it waits until the thread has let go, as with a call that runs alone.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from noetl.tools.sql_results import Outcome
from noetl.tools.sql_threads import FileLocks, Interruption, SqlThreads, stop

GROUP_CALLS_MAX = 64

Work = TypeVar("Work")
Answer = list[Outcome] | Exception


class Waiting(Generic[Work]):
    """One call. It begins in a thread or is withdrawn by its caller, whichever comes first."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.interruption = Interruption()
        self.answer: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._first = threading.Lock()
        self._is_begun = False

    def begin(self) -> bool:
        """False: it was withdrawn."""
        self._is_begun = self._is_begun or self._first.acquire(blocking=False)
        return self._is_begun

    def withdraw(self) -> bool:
        """False: it has begun."""
        return self._first.acquire(blocking=False) and self.answer.cancel()

    def end(self, answer: Answer) -> None:
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Line(Generic[Work]):
    """The calls that wait for one file, and those that a thread has."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.waiting: deque[Waiting[Work]] = deque()
        self.batch: list[Waiting[Work]] = []


class Groups(Generic[Work]):
    def __init__(
        self,
        threads: SqlThreads,
        turns: FileLocks,
        run_together: Callable[[Sequence[Waiting[Work]], Interruption], Sequence[Answer]],
    ) -> None:
        self._threads = threads
        self._turns = turns
        self._run_together = run_together
        self._lines: dict[str, Line[Work]] = {}
        self._leading: set[asyncio.Task[None]] = set()

    async def run(self, path: str, work: Work) -> list[Outcome]:
        waiting = Waiting(work)
        self._line(path).waiting.append(waiting)
        try:
            return await asyncio.shield(waiting.answer)
        except asyncio.CancelledError:
            if not waiting.withdraw():
                await stop(waiting.answer, waiting.interruption)
            raise

    def _line(self, path: str) -> Line[Work]:
        if path not in self._lines:
            line = self._lines[path] = Line[Work](path)
            leading = asyncio.ensure_future(self._lead(line))
            self._leading.add(leading)
            leading.add_done_callback(partial(self._led, line))
        return self._lines[path]

    async def _lead(self, line: Line[Work]) -> None:
        while line.waiting:
            async with self._turns.holding(line.path):
                count = min(len(line.waiting), GROUP_CALLS_MAX)
                line.batch = [line.waiting.popleft() for _ in range(count)]
                answers = await self._threads.run(partial(self._run_together, line.batch))
            for waiting, answer in zip(line.batch, answers, strict=True):
                waiting.end(answer)
        del self._lines[line.path]

    def _led(self, line: Line[Work], leading: "asyncio.Task[None]") -> None:
        """Nobody is left waiting by a line that broke."""
        self._leading.discard(leading)
        if self._lines.get(line.path) is line:
            del self._lines[line.path]
        broken = RuntimeError("the work of a thread was given up")
        error = broken if leading.cancelled() else leading.exception()
        for waiting in (*line.batch, *line.waiting):
            waiting.end(error if isinstance(error, Exception) else broken)
