"""Who runs what a command asks for: a server, the process that holds the home, or this one."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module

from noetl.bootstrap.home import Holder
from noetl.bootstrap.logs import configure_logs
from noetl.bootstrap.running import engine_or_holder, system_clock
from noetl.bootstrap.settings import Settings
from noetl.cli.output import tell
from noetl.cli.runs import EngineRuns, Follower, Runs
from noetl.kernel.errors import HomeInUse


class Reach:
    """Where to go, and how long to wait in all: for the home, then for the end."""

    def __init__(
        self,
        server: str | None = None,
        timeout_seconds: float | None = None,
        *,
        does_work: bool = True,
    ) -> None:
        self.server = server
        self.does_work = does_work  # else an engine of our own starts nothing
        self._clock = system_clock()
        self._until = None if timeout_seconds is None else self._clock.monotonic() + timeout_seconds

    @property
    def seconds_left(self) -> float | None:
        """None: as long as it takes."""
        return None if self._until is None else max(0.0, self._until - self._clock.monotonic())


@asynccontextmanager
async def connected(settings: Settings, reach: Reach, follower: Follower) -> AsyncIterator[Runs]:
    configure_logs(settings, "warning", "text")  # beside progress, which is for people
    if reach.server is not None:
        there = Holder(pid=0, address=reach.server, api_key=settings.api_key)
        async with _server(there, follower) as runs:
            yield runs
        return
    opened = engine_or_holder(settings, reach.seconds_left, _waiting, has_worker=reach.does_work)
    async with opened as found:
        if isinstance(found, Holder):
            async with _server(found, follower) as runs:
                yield runs
        else:
            yield EngineRuns(found, follower)


def _server(holder: Holder, follower: Follower) -> AbstractAsyncContextManager[Runs]:
    # Only now: the HTTP library takes a fifth of a second to load.
    opened: AbstractAsyncContextManager[Runs] = import_module("noetl.cli.server_runs").server_runs(
        holder, follower
    )
    return opened


def _waiting(refusal: HomeInUse) -> None:
    tell(f"waiting: {refusal.home} is in use by a process that does not listen; Ctrl-C gives up")
