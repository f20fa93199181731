"""`noetl replay …`: the state of an execution at any point, with the checksums that prove it."""

import asyncio
import sys
from typing import Any

import click
import msgspec

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.settings import load_settings
from noetl.cli.output import print_fields, print_json, tell
from noetl.domain.execution.accumulator import drop_row
from noetl.domain.log import AtEvent, AtPosition, AtTime, Cutoff
from noetl.domain.surfaces import RowCollector
from noetl.kernel import instant
from noetl.kernel.errors import TimeInvalid
from noetl.kernel.ids import EventId, ExecutionId
from noetl.ports.event_log import EventLog
from noetl.runtime.certificate import Certificate, certify
from noetl.runtime.payload_verification import verify_payloads
from noetl.runtime.replay import Replay, ReplayReport, ReplayRequest
from noetl.wire.checks import is_snowflake

POINT = "event=ID|position=N|time=ISO"


def _parse_point(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> Cutoff | None:
    """One option for all three kinds of point, so that two of them cannot be given."""
    if value is None:
        return None
    kind, _, point = value.partition("=")
    if kind == "event" and point:
        return AtEvent(EventId(point))
    if kind == "position" and is_snowflake(point):  # both are numbers of 63 bits
        return AtPosition(int(point))
    if kind != "time":
        raise click.BadParameter(f"{value!r} is not a point; use {POINT}")
    try:
        return AtTime(instant.parse(point))
    except TimeInvalid as error:
        raise click.BadParameter(f"{error}; e.g. time=2026-11-15T21:00:00Z") from error


_execution = click.argument("execution_id", type=ExecutionId)
_at = click.option(
    "--at",
    "cutoff",
    callback=_parse_point,
    metavar=POINT,
    help="Default: the newest event. A position is of the whole log, a time is that of intake.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def replay() -> None:
    """Rebuild the state of an execution at any point."""


@replay.command()
@_execution
@_at
@click.option("--with", "extras", multiple=True, type=click.Choice(["rows", "payloads"]))
@_json
def state(
    execution_id: ExecutionId, cutoff: Cutoff | None, extras: tuple[str, ...], as_json: bool
) -> None:
    """Fold the events to a point and show the state's checksums.

    `--with rows` adds every row of the six surfaces, `--with payloads` reads and checks each
    payload that the events name.
    """
    request = _request(execution_id, cutoff)
    answer, beginning = asyncio.run(_state(request, extras))
    if beginning is not None:
        tell(f"nothing had happened at that point: its first event is at {beginning}")
    if as_json or extras:
        print_json(answer)
    elif beginning is None:
        _print_report(answer["report"], answer["execution"])
    summary = answer.get("payloads", {}).get("summary", {})
    sys.exit(0 if summary.get("all_resolved", True) else 1)


@replay.command()
@_execution
@_at
@_json
def snapshot(execution_id: ExecutionId, cutoff: Cutoff | None, as_json: bool) -> None:
    """Freeze a state, so that later replays start from there."""
    taken = asyncio.run(_snapshot(_request(execution_id, cutoff)))
    if as_json:
        print_json(taken)
    else:
        print_fields({name.replace("_", " "): value for name, value in taken.items()})


@replay.command()
@_execution
@_at
@_json
def verify(execution_id: ExecutionId, cutoff: Cutoff | None, as_json: bool) -> None:
    """Prove a state three ways. From all events, from a snapshot, and from its plain rows."""
    certificate = asyncio.run(_certify(_request(execution_id, cutoff)))
    if as_json:
        print_json(certificate)
    else:
        _print_certificate(certificate)
    sys.exit(0 if certificate.proved else 1)


def _request(execution_id: ExecutionId, cutoff: Cutoff | None) -> ReplayRequest:
    return ReplayRequest(scope=load_settings().scope, execution_id=execution_id, cutoff=cutoff)


async def _state(
    request: ReplayRequest, extras: tuple[str, ...]
) -> tuple[dict[str, Any], str | None]:
    """The answer, and when the point is before the beginning, where that is."""
    async with open_platform(load_settings(), create=False) as platform:
        collector = RowCollector()
        engine = Replay(platform.log, platform.snapshots)
        replayed = await engine.state(request, collector if "rows" in extras else drop_row)
        answer: dict[str, Any] = {
            "report": replayed.report,
            "execution": replayed.state.execution,
        }
        if "rows" in extras:
            answer["rows"] = collector.rows(replayed.state)
        if "payloads" in extras:
            found = await verify_payloads(engine.events(request), platform.results)
            answer["payloads"] = msgspec.to_builtins(found)
        is_empty = replayed.report.event_count == 0
        return answer, await _beginning(platform.log, request) if is_empty else None


async def _beginning(log: EventLog, request: ReplayRequest) -> str:
    [first] = await log.read(request.execution_id, limit=1)
    return f"position={first.position}, time={first.ingest_time}"


async def _snapshot(request: ReplayRequest) -> dict[str, Any]:
    async with open_platform(load_settings(), create=False) as platform:
        taken = await Replay(platform.log, platform.snapshots).take_snapshot(
            request, platform.clock()
        )
        await platform.snapshots.save(taken)
    return {
        "execution_id": taken.execution_id,
        "stream_version": taken.stream_version,
        "checksum": taken.checksum,
        "bytes": len(taken.state),
    }


async def _certify(request: ReplayRequest) -> Certificate:
    async with open_platform(load_settings(), create=False) as platform:
        return await certify(platform.log, platform.snapshots, request)


def _from_snapshot(certificate: Certificate) -> str:
    start = certificate.snapshot_version
    if not start:
        return "none was taken; noetl replay snapshot takes one"
    agrees = "equal" if certificate.snapshot_agrees else "DIFFERENT"
    return f"{agrees}, taken at version {start}"


def _print_certificate(certificate: Certificate) -> None:
    print_fields(
        {
            "execution": certificate.execution_id,
            "events": certificate.event_count,
            "checksum": certificate.checksum,
            "fold version": certificate.fold_version,
            "upcasters": certificate.upcaster_registry_digest,
            "from plain rows": "equal" if certificate.rows.matches else "DIFFERENT",
            "from a snapshot": _from_snapshot(certificate),
            "proved": "yes" if certificate.proved else "NO",
        }
    )


def _print_report(report: ReplayReport, execution: Any) -> None:
    print_fields(
        {
            "execution": report.execution_id,
            "status": execution.status,
            "playbook": execution.path,
            "last step": execution.last_node_name,
            "last event": f"{execution.last_event_type} {report.last_event_id}",
            "version": f"{report.stream_version} (position {report.position})",
            "folded": f"{report.events_folded} of {report.event_count} events",
            "checksum": report.checksum,
            **{f"  {name}": value for name, value in report.projection_checksums.items()},
        }
    )
