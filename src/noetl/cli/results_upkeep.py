"""`noetl results verify, gc`: are stored results whole, and which of them nobody can ask for."""

import asyncio
import sys

import click

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.repairing import open_repairs, result_collector
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.output import count, print_json, print_table, say, tell
from noetl.dsl.language.shapes import duration_seconds
from noetl.kernel.ids import ExecutionId
from noetl.runtime.results_gc import CollectionReport, CollectionRequest
from noetl.runtime.results_repair import Verification


def _parse_grace(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    seconds = duration_seconds(value)
    if seconds is None or seconds < 0:
        raise click.BadParameter(f"{value!r} is no length of time; use e.g. 24h, 30m or 0s")
    return seconds


@click.command()
@click.argument("executions", metavar="[ID]...", nargs=-1, type=ExecutionId)
@click.option("--all", "of_all", is_flag=True, help="Every execution in the log.")
@click.option("--repair", is_flag=True, help="Bring back what is lost or damaged.")
@options.as_json
def verify(executions: tuple[ExecutionId, ...], of_all: bool, repair: bool, as_json: bool) -> None:
    """Read every object that the events name. Say which are missing or damaged.

    With --repair the same bytes are put back: from a copy on this node or a replica, from the
    log, or by running again what made them, if it has no effects. The digest in the log decides,
    and what is whole is never written. Otherwise it is said why not.

    \b
    noetl results verify ID --repair
    """
    if bool(executions) == of_all:
        raise click.UsageError("name executions, or give --all")
    found = asyncio.run(_verify(None if of_all else executions, repair))
    if as_json:
        print_json(found)
    else:
        _print_verification(found, repair)
    sys.exit(0 if found.is_sound else 1)


@click.command()
@click.option(
    "--grace",
    "grace_seconds",
    default="24h",
    show_default=True,
    callback=_parse_grace,
    metavar="TIME",
    help="What is younger is left alone.",
)
@click.option("--delete", "is_for_real", is_flag=True, help="Delete; without it they are listed.")
@click.option(
    "--superseded",
    is_flag=True,
    help="With --delete: also what attempts left in completed executions and no event names.",
)
@options.as_json
def gc(grace_seconds: float, is_for_real: bool, superseded: bool, as_json: bool) -> None:
    """List or delete results of executions that are gone.

    Payloads and playbooks go by their digests, which any execution may name: they stay. Nothing
    is collected while read models lag behind the log by more than the grace.

    \b
    noetl results gc
    noetl results gc --delete
    """
    request = CollectionRequest(
        dry_run=not is_for_real, grace_seconds=grace_seconds, superseded=superseded
    )
    report = asyncio.run(_collect(request))
    if as_json:
        print_json(report)
    else:
        _print_collection(report)


async def _verify(executions: tuple[ExecutionId, ...] | None, repair: bool) -> Verification:
    settings = load_settings()
    async with (
        open_platform(settings, create=False) as platform,
        open_repairs(settings, platform) as repairs,
    ):
        return await repairs.verify(settings.scope, executions, repair=repair)


async def _collect(request: CollectionRequest) -> CollectionReport:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        return await result_collector(platform).collect(settings.scope, request)


def _print_verification(found: Verification, repair: bool) -> None:
    for finding in found.findings:
        if finding.repaired:
            say(f"repaired  {finding.uri}  ({finding.verdict}; from: {finding.source})")
        elif finding.cannot is not None:
            say(f"cannot    {finding.uri}  ({finding.verdict}): {finding.cannot}")
        else:
            say(f"{finding.verdict:<8}  {finding.uri}")
    if found.findings_omitted:
        tell(f"and {found.findings_omitted:,} more")
    whole = found.verdicts.get("ok", 0)
    say(
        f"{count(found.objects, 'object')} of {count(found.executions, 'execution')} read,"
        f" {found.bytes:,} bytes: {whole:,} whole, {found.repaired:,} repaired,"
        f" {found.objects - whole - found.repaired:,} not"
    )
    if not found.is_sound and not repair:
        tell("next: the same with --repair")


def _print_collection(report: CollectionReport) -> None:
    rows = [
        ("deleted" if each.deleted else each.verdict, each.byte_length, each.key)
        for each in report.candidates
    ]
    if rows:
        print_table(("what", "bytes", "key"), rows)
    if report.candidates_omitted:
        tell(f"and {report.candidates_omitted:,} more")
    told = ", ".join(f"{number:,} {what}" for what, number in sorted(report.objects.items()))
    say(f"objects: {told or 'none'}")
    if not report.dry_run:
        say(f"deleted: {count(report.deleted, 'object')}, {report.deleted_bytes:,} bytes")
    elif report.objects.get("orphan"):
        tell("next: noetl results gc --delete")
    else:
        tell("there is nothing to delete")
