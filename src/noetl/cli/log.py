"""`noetl log …`: look at the events themselves."""

import asyncio
import sys

import click
import msgspec

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.settings import load_settings
from noetl.cli.output import print_fields, print_json, say, shown, tell
from noetl.domain.log import StoredEvent
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.runtime.verify_log import LogReport, verify_log
from noetl.wire.codec import open_stored

POSITION_MAX = 2**63 - 1

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")


@click.group()
def log() -> None:
    """Look at the events themselves."""


@log.command()
@click.option(
    "--after",
    "after_position",
    type=click.IntRange(0, POSITION_MAX),
    help="Show what follows this position; default: the end of the log.",
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@_json
def tail(after_position: int | None, limit: int, as_json: bool) -> None:
    """Show events in the order they were committed. Times are those of their intake."""
    asyncio.run(_tail(after_position, limit, as_json))


@log.command()
@click.argument("execution_id")
def export(execution_id: str) -> None:
    """Write an execution's events as they are stored. One JSON object per line."""
    asyncio.run(_export(ExecutionId(execution_id)))


@log.command()
@_json
def verify(as_json: bool) -> None:
    """Check every checksum, version and link of the whole log."""
    sys.exit(asyncio.run(_verify(as_json)))


async def _tail(after_position: int | None, limit: int, as_json: bool) -> None:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        if after_position is None:
            after_position = max(0, await last_position(platform.log) - limit)
        while limit > 0:
            page = await platform.log.tail(
                after_position=after_position, limit=min(limit, PAGE_EVENTS_MAX)
            )
            if not page:
                return
            for stored in page:
                if open_stored(stored).envelope.scope == settings.scope:
                    _print_event(stored, as_json)
                    limit -= 1
            after_position = page[-1].position


async def last_position(log: EventLog) -> int:
    """Found by halving, because a log knows its streams' ends and not its own."""
    low, high = 0, 1
    while await log.tail(after_position=high, limit=1):
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if await log.tail(after_position=middle, limit=1):
            low = middle + 1
        else:
            high = middle
    return low


def _print_event(stored: StoredEvent, as_json: bool) -> None:
    recorded = open_stored(stored)
    envelope = recorded.envelope
    if as_json:
        event = msgspec.json.decode(stored.canonical)
        print_json({"position": stored.position, "ingest_time": stored.ingest_time, "event": event})
        return
    step = getattr(recorded.event, "step", None) or ""
    say(
        f"{stored.position:>8}  {stored.ingest_time}  {envelope.execution_id}"
        f"@{stored.stream_version:<6}  {shown(envelope.event_type):<22}  {shown(step)}"
    )


async def _export(execution_id: ExecutionId) -> None:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        request = ReplayRequest(scope=settings.scope, execution_id=execution_id)
        async for stored in Replay(platform.log).stored(request):
            say(stored.canonical)


async def _verify(as_json: bool) -> int:
    async with open_platform(load_settings(), create=False) as platform:
        report = await verify_log(platform.log)
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    return 0 if report.is_sound else 1


def _print_report(report: LogReport) -> None:
    print_fields(
        {
            "log": report.identity,
            "streams": report.streams,
            "events": report.events,
            "last position": report.last_position,
            "faults": report.fault_count or "none",
        }
    )
    for fault in report.faults:
        say(f"  {shown(fault.kind)} at position {fault.position}: {shown(fault.message)}")
    if report.fault_count > len(report.faults):
        say(f"  … and {report.fault_count - len(report.faults)} more")
    if not report.is_sound:
        tell("next: bring the log back from a copy; nothing here repairs events")
