"""`noetl executions watch`: follow an execution that another process runs, from the log itself."""

import asyncio
import sys

import click

from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.running import holder_of, system_clock
from noetl.bootstrap.settings import Settings, load_settings
from noetl.cli import options
from noetl.cli.ending import left, report
from noetl.cli.following import Following
from noetl.cli.runs import GoesOn
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.runtime.executions import Executions
from noetl.wire.codec import open_stored

LOOK_SECONDS = 0.2

_NOBODY = GoesOn("no process runs it now", "executions resume")
_STILL = GoesOn("it still runs", "executions watch")


@click.command()
@click.argument("execution", metavar="ID", type=ExecutionId)
@options.as_json
@options.quiet
@options.timeout
def watch(execution: ExecutionId, as_json: bool, is_quiet: bool, timeout: float | None) -> None:
    """Follow an execution to its end, and print its result.

    Reads the log, so it disturbs nobody; Ctrl-C ends the watching alone. Exit codes are those of
    `noetl run`; 3 when the time is over or no process runs it.

    \b
    noetl executions watch ID --timeout 60
    """
    following = Following(is_quiet)
    sys.exit(asyncio.run(watched(execution, following, as_json, timeout)))


async def watched(
    execution: ExecutionId, following: Following, as_json: bool, timeout_seconds: float | None
) -> int:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        if await platform.log.scope_of(execution) != settings.scope:
            raise ExecutionNotFound(execution)
        with following.shown():
            why_not = await _follow(platform, settings, execution, following, timeout_seconds)
        if why_not is not None:
            return left(execution, following.status, why_not, as_json=as_json)
        executions = Executions(platform.log, platform.projections, platform.results)
        outcome = await executions.outcome(settings.scope, execution)
    return report(outcome, as_json=as_json, is_quiet=False)


async def _follow(
    platform: Platform,
    settings: Settings,
    execution: ExecutionId,
    following: Following,
    timeout_seconds: float | None,
) -> GoesOn | None:
    """None when it ended, else why we stop watching."""
    clock = system_clock()
    until = None if timeout_seconds is None else clock.monotonic() + timeout_seconds
    version = 0
    while True:
        is_held = holder_of(settings) is not None or settings.log_url != "sqlite:"
        page = await platform.log.read(execution, after_version=version)
        following([open_stored(stored) for stored in page])
        version = page[-1].stream_version if page else version
        if len(page) == PAGE_EVENTS_MAX:
            continue
        if following.progress.is_over:
            return None
        if not is_held:
            return _NOBODY
        if until is not None and clock.monotonic() >= until:
            return _STILL
        await clock.sleep(LOOK_SECONDS)
