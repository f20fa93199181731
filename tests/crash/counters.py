"""Two HTTP targets that are told things: one honours idempotency keys, the other counts everything.

They live in a thread of the test's own process, so that no kill takes them away.
"""

import asyncio
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from aiohttp import web

from noetl.kernel.instant import Instant, from_datetime
from noetl.servers.process import LOOPBACK

HONOURING, COUNTING = "honouring", "counting"
READY_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class Arrival:
    target: str
    key: str
    at: Instant


@dataclass
class Counters:
    """Everything that arrived, in order; an answer depends on what was sent alone."""

    arrivals: list[Arrival] = field(default_factory=list)
    honoured: Counter[str] = field(default_factory=Counter)
    url: str = ""

    def __enter__(self) -> Self:
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._is_ready.wait(READY_SECONDS_MAX), "the counters do not listen"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join(READY_SECONDS_MAX)

    def of(self, execution: str, target: str) -> Counter[str]:
        """How often each key of the execution arrived."""
        return Counter(
            arrival.key
            for arrival in list(self.arrivals)
            if arrival.target == target and arrival.key.startswith(f"{execution}/")
        )

    def _is_first(self, key: str) -> bool:
        return sum(arrival.key == key for arrival in self.arrivals) == 1

    async def _serve(self) -> None:
        self._loop, self._is_over = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_post("/{target}/{name}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        assert runner.addresses
        self.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        self._is_ready.set()
        await self._is_over.wait()
        with suppress(TimeoutError):
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        target, name = request.match_info["target"], request.match_info["name"]
        key = request.headers["Idempotency-Key"]
        body = await request.json()
        self.arrivals.append(Arrival(target, key, from_datetime(datetime.now(UTC))))
        if target == HONOURING and key not in self.honoured:
            if name == "flaky" and self._is_first(key):
                return web.json_response({"error": "not now"}, status=503)
            self.honoured[key] += 1
        return web.json_response({"name": name, "told": body})
