"""Follow an execution to its end, show how far it is, and let a person stop it."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Protocol

from noetl.bootstrap.leaving import on_signals
from noetl.bootstrap.running import system_clock
from noetl.cli.output import tell
from noetl.cli.printed import printed_shown
from noetl.cli.progress import Progress, StepProgress
from noetl.cli.progress_text import NEWS_SECONDS, TextProgress
from noetl.cli.runs import Happened, Runs
from noetl.domain.events import ExecutionPaused, ExecutionResumed
from noetl.kernel.errors import NoETLError, StateRefuses
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant, seconds_between


class Display(Protocol):
    def begin(self) -> None: ...

    def end(self) -> None: ...

    def say(self, line: str) -> None: ...

    def note(self, line: str) -> None: ...

    def show(self, rows: list[StepProgress]) -> None: ...


class Silence:
    """For `--quiet`: what must be said is said, and nothing is shown."""

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def say(self, line: str) -> None:
        tell(line)

    def note(self, line: str) -> None:
        pass

    def show(self, rows: list[StepProgress]) -> None:
        pass


class Lines(Silence):
    """Where stderr is a file or a pipe: one line per step."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._text = TextProgress()
        self._now = now

    def note(self, line: str) -> None:
        tell(f"  {line}")

    def show(self, rows: list[StepProgress]) -> None:
        for line in self._text.lines(rows, self._now()):
            tell(line)


class Following:
    """Takes events, keeps the progress, and tells the display."""

    def __init__(self, is_quiet: bool, *, shows_printed: bool = False) -> None:
        self._now = system_clock().now
        self._shows_printed = shows_printed and not is_quiet
        self.progress = Progress()
        self.display = self._chosen(is_quiet)

    def __call__(self, events: Sequence[Happened]) -> None:
        for each in events:
            rows = self.progress.take(each.envelope, each.event)
            for line in (*self.progress.news, *_steered(each)):
                self.display.note(line)
            self.progress.news.clear()
            shown = rows if self._is_new(each) else [row for row in rows if row.ended_at]
            if shown:  # at once: the next event may change them
                self.display.show(shown)

    def _is_new(self, happened: Happened) -> bool:
        """How far a loop had come once is no news; that it came to its end is."""
        return seconds_between(happened.envelope.event_time, self._now()) < NEWS_SECONDS

    def recall(self, events: Sequence[Happened]) -> None:
        for each in events:
            self.progress.take(each.envelope, each.event)
        self.progress.forget_pace(self._now())

    @property
    def status(self) -> str:
        """Of an execution that has not ended, as far as its events came."""
        return "PAUSED" if self.progress.status == "PAUSED" else "RUNNING"

    @contextmanager
    def shown(self) -> Iterator[None]:
        self.display.begin()
        try:
            with printed_shown(self.display.note) if self._shows_printed else nullcontext():
                yield
        finally:
            self.display.end()

    def _chosen(self, is_quiet: bool) -> Display:
        if is_quiet:
            return Silence()
        if not sys.stderr.isatty():
            return Lines(self._now)
        # Only a terminal needs the library that draws, and it takes a tenth of a second to load.
        live = import_module("noetl.cli.progress_live")
        drawn: Display = live.LiveProgress(self.progress, self._now)
        return drawn


def _steered(happened: Happened) -> Iterator[str]:
    """What somebody else has asked for."""
    if isinstance(happened.event, ExecutionPaused):
        execution = happened.envelope.execution_id
        yield f"paused; go on with: noetl executions resume {execution}"
    elif isinstance(happened.event, ExecutionResumed):
        yield "resumed"


async def until_over(
    runs: Runs, execution: ExecutionId, display: Display, timeout_seconds: float | None
) -> bool:
    """Whether it came to its end: not when the time is over or a person leaves.

    The first Ctrl-C cancels the execution, the second leaves it as it is, at once. SIGTERM leaves
    it like time that is over: what runs may end, nothing is cancelled.
    """
    if await _has_ended(runs, execution, display, timeout_seconds):
        return True
    if not runs.is_server:
        display.say("leaving: what runs may end first; Ctrl-C leaves at once")
    return await runs.leave(execution)


async def _has_ended(
    runs: Runs, execution: ExecutionId, display: Display, timeout_seconds: float | None
) -> bool:
    waiting = asyncio.create_task(runs.until_over(execution))
    wishes: list[asyncio.Task[None]] = []

    def interrupted() -> None:
        if wishes:
            runs.hurry()
            waiting.cancel()
            return
        display.say("cancelling; Ctrl-C again leaves at once")
        wishes.append(asyncio.create_task(_cancel(runs, execution, display)))

    def terminated() -> None:
        waiting.cancel()

    with on_signals((signal.SIGINT,), interrupted), on_signals((signal.SIGTERM,), terminated):
        done, _ = await asyncio.wait([waiting], timeout=timeout_seconds)
        waiting.cancel()
        for wish in wishes:
            wish.cancel()
        await asyncio.gather(*wishes, return_exceptions=True)
    if done and not waiting.cancelled():
        waiting.result()
        return True
    return False


async def _cancel(runs: Runs, execution: ExecutionId, display: Display) -> None:
    try:
        await runs.cancel(execution, "Ctrl-C")
    except StateRefuses:
        pass  # it has just ended by itself
    except NoETLError as error:
        display.say(f"{error.code}: {error}")
