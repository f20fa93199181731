"""Many writers, few flushes: what queued while the last flush ran is the next group.

There is no timer. A lone writer is flushed at once; under load the groups grow by themselves.
"""

import asyncio
import logging
from collections.abc import Sequence

from noetl.domain.log import Append, Appended, AppendOutcome
from noetl.kernel.errors import LogError
from noetl.ports.clock import Clock
from noetl.ports.event_log import GROUP_APPENDS_MAX, EventLog
from noetl.ports.telemetry import EXECUTION, NoTelemetry, SpanPlace, Telemetry
from noetl.runtime.measures import Measures

_LOG = logging.getLogger(__name__)
GROUP_EVENTS_MAX = 5_000
"""A group holds its transaction open: past this size waiting costs more than another flush."""

_Waiting = tuple[Append, "asyncio.Future[AppendOutcome]"]


class GroupCommit:
    """Appends one at a time as its callers see it, in groups as the log sees it."""

    def __init__(
        self,
        log: EventLog,
        clock: Clock | None = None,
        measures: Measures | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._log = log
        self._clock = clock  # None: nobody wants to know how long it takes
        self._measures = measures or Measures()
        self._telemetry = telemetry or NoTelemetry()
        self._queue: list[_Waiting] = []
        self._in_flight: list[_Waiting] = []
        self._flusher: asyncio.Task[None] | None = None

    async def append(self, append: Append) -> Appended:
        """Returns once the events are durable; raises what the log refused them with."""
        place = SpanPlace("append", "append", append.execution_id, below=EXECUTION)
        with self._telemetry.span(place, {"noetl.events": len(append.events)}):
            return await self._appended(append)

    async def _appended(self, append: Append) -> Appended:
        future: asyncio.Future[AppendOutcome] = asyncio.get_running_loop().create_future()
        self._queue.append((append, future))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_all())
            self._flusher.add_done_callback(self._release)
        outcome = await future
        if isinstance(outcome, LogError):
            raise outcome
        return outcome

    async def drain(self) -> None:
        """Wait until everything that was queued has been flushed."""
        while self._flusher is not None and not self._flusher.done():
            await asyncio.wait([self._flusher])

    async def _flush_all(self) -> None:
        while self._queue:
            group = self._in_flight = self._take_group()
            began = 0.0 if self._clock is None else self._clock.monotonic()
            try:
                outcomes: Sequence[AppendOutcome] = await self._log.append(
                    [append for append, _ in group]
                )
            except LogError as error:  # the whole group failed, e.g. the store is away
                _LOG.warning("%d appends failed together: %s", len(group), error.code)
                outcomes = [error] * len(group)
            self._measure(group, began)
            for (_, future), outcome in zip(group, outcomes, strict=True):
                if not future.done():  # its caller may have gone away
                    future.set_result(outcome)

    def _measure(self, group: list[_Waiting], began: float) -> None:
        if self._clock is None:
            return
        self._measures.tell("group_seconds", self._clock.monotonic() - began)
        self._measures.tell("group_appends", len(group))
        self._measures.tell("group_events", sum(len(append.events) for append, _ in group))

    def _release(self, flusher: "asyncio.Task[None]") -> None:
        """A flusher that died of something unforeseen must not leave its callers waiting."""
        error = None if flusher.cancelled() else flusher.exception()
        if error is None and not flusher.cancelled():
            return
        for _, future in [*self._in_flight, *self._queue]:
            if not future.done() and error is not None:
                future.set_exception(error)
            elif not future.done():
                future.cancel()
        self._queue.clear()

    def _take_group(self) -> list[_Waiting]:
        size = events = 0
        while size < min(len(self._queue), GROUP_APPENDS_MAX) and events < GROUP_EVENTS_MAX:
            events += len(self._queue[size][0].events)
            size += 1
        group, self._queue = self._queue[:size], self._queue[size:]
        return group
