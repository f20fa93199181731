"""An execution's events as they come: the log so far, then every append, as server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal

import msgspec

from noetl.api.event_rows import event_row
from noetl.domain.events import ExecutionCancelled, PlaybookCompleted, PlaybookFailed
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import EventLog
from noetl.runtime.coordinator import Coordinator
from noetl.wire.codec import open_stored

LOOK_SECONDS = 5.0
"""Another process may append without telling us: the log is looked at this often."""

PAGE_EVENTS = 200
Form = Literal["rows", "stored"]
"""Flat rows to look at, or the log's own rows, which prove themselves."""

_ENDS = (PlaybookCompleted, PlaybookFailed, ExecutionCancelled)


class Following:
    """One listener for all who follow: an append wakes those who wait for its execution."""

    def __init__(self, coordinator: Coordinator, log: EventLog) -> None:
        self._coordinator = coordinator
        self._log = log
        self._waiting: dict[ExecutionId, set[asyncio.Event]] = {}
        self.is_closed = False
        coordinator.listeners.append(self._heard)

    def close(self) -> None:
        """Streams end; whoever reads them comes back with the last id that they saw."""
        self.is_closed = True
        self._coordinator.listeners.remove(self._heard)
        for waiting in self._waiting.values():
            for news in waiting:
                news.set()

    async def stream(
        self, execution: ExecutionId, after_version: int, *, is_over: bool, form: Form
    ) -> AsyncIterator[bytes]:
        """Ends when the execution does; `is_over`: it had ended when the caller looked."""
        news = asyncio.Event()
        self._waiting.setdefault(execution, set()).add(news)
        version = after_version
        try:
            while not self.is_closed:
                news.clear()
                page = await self._log.read(execution, after_version=version, limit=PAGE_EVENTS)
                for stored in page:
                    recorded = open_stored(stored)
                    version = stored.stream_version
                    is_over = isinstance(recorded.event, _ENDS)
                    shown = stored if form == "stored" else event_row(recorded)
                    name = recorded.envelope.event_type.encode()
                    data = msgspec.json.encode(shown)
                    yield b"id: %d\nevent: %s\ndata: %s\n\n" % (version, name, data)
                if page:
                    continue
                if is_over:
                    return
                if not await _within(news, LOOK_SECONDS):
                    yield b": still here\n\n"  # so that nobody between us gives up
        finally:
            self._forget(execution, news)

    def _heard(self, execution: ExecutionId, _events: Sequence[SealedEvent]) -> None:
        for news in self._waiting.get(execution, ()):
            news.set()

    def _forget(self, execution: ExecutionId, news: asyncio.Event) -> None:
        waiting = self._waiting[execution]
        waiting.discard(news)
        if not waiting:
            del self._waiting[execution]


async def _within(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True
