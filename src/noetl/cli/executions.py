"""`noetl executions …`: look at executions. What changes them is in `steering`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import msgspec

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.running import holder_of
from noetl.bootstrap.settings import Settings, load_settings
from noetl.cli import options
from noetl.cli.lazy import LazyCommands
from noetl.cli.output import (
    print_fields,
    print_json,
    print_table,
    say,
    seconds_shown,
    shown,
    tell,
)
from noetl.domain.events import EVENT_CLASSES
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.rows import TERMINAL
from noetl.domain.playbook.wording import nearest
from noetl.domain.projection import QUERY_RECORDS_MAX
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.runtime.effect_entries import EffectEntry, counted
from noetl.runtime.executions import Executions, ExecutionView
from noetl.runtime.loop_progress import LoopProgress
from noetl.runtime.projector import Projector

STEPS_EVENTS_MAX = 20_000
"""Longer logs are not folded to say what became of each step: that takes more than a moment."""

_EVENT_TYPES = tuple(cls.TYPE for cls in EVENT_CLASSES)
STATUSES = ("RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED")
_NONE = "no executions; run a playbook: noetl run FILE"

_execution = click.argument("execution", metavar="ID", type=ExecutionId)

_PLACES = {
    name: f"noetl.cli.{module}:{name}"
    for module, names in {
        "trace": ("trace",),
        "stages": ("stages", "frames"),
        "watch": ("watch",),
        "steering": ("cancel", "pause", "resume", "retry"),
    }.items()
    for name in names
}


@click.group(commands=LazyCommands(_PLACES))
def executions() -> None:
    """Look at executions, stop them, and run them again."""


@executions.command(name="list")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="Only executions in this state.",
)
@click.option("--path", help="Only executions of this playbook.")
@click.option("--limit", type=click.IntRange(1, QUERY_RECORDS_MAX), default=20, show_default=True)
@options.as_json_lines
def list_all(status: str | None, path: str | None, limit: int, as_json: bool) -> None:
    """List executions, the newest first.

    \b
    noetl executions list --status failed --limit 5
    """
    views = asyncio.run(_list(status, path, limit))
    if as_json:
        for view in views:
            print_json(view)
        return
    if not views:
        is_some = status is not None or path is not None
        tell("no such executions; all of them: noetl executions list" if is_some else _NONE)
        return
    rows = [
        (v.execution_id, v.status, v.path, v.started_at, _spent(v), v.error_kind) for v in views
    ]
    print_table(("id", "status", "playbook", "started", "took", "error"), rows)


@executions.command()
@_execution
@options.as_json
def show(execution: ExecutionId, as_json: bool) -> None:
    """Show one execution: how far it is, or how it ended."""
    view, steps = asyncio.run(_show(execution))
    if as_json:
        print_json({**msgspec.to_builtins(view), "steps": steps})
        return
    print_fields(
        {
            "execution": view.execution_id,
            "playbook": f"{view.path}@{view.version}",
            "status": view.status,
            "step": view.current_step,
            "started": view.started_at,
            "ended": view.ended_at,
            "took": _spent(view),
            "events": view.event_count,
            "parent": view.parent_execution_id,
            "steps": ", ".join(f"{name} {status.lower()}" for name, status in steps.items())
            or None,
            **{_loop_name(each): _loop(each) for each in view.loop_progress},
            **_why(view),
        }
    )
    for command in _next(view, is_left=_is_left(load_settings())):
        tell(f"next: noetl {command}")


@executions.command()
@_execution
@click.option("--type", "event_type", help="Only events of this type, e.g. step.exit.")
@click.option("--after", "after_version", type=click.IntRange(0), default=0, show_default=True)
@click.option("--limit", type=click.IntRange(1, PAGE_EVENTS_MAX), default=100, show_default=True)
@click.option("--all", "is_all", is_flag=True, help="All of them, whatever the limit.")
@options.as_json_lines
def events(execution: ExecutionId, as_json: bool, is_all: bool, **given: Any) -> None:
    """Show what happened, event by event.

    A page at a time: stderr says how to get the next one.

    \b
    noetl executions events ID --type step.exit --json
    noetl executions events ID --all --json
    """
    if is_all:
        given["limit"] = PAGE_EVENTS_MAX
    last = asyncio.run(_events(execution, given, is_all=is_all, as_json=as_json))
    if last is not None:
        tell(f"more: --after {last}, or --all")
    wanted = given["event_type"]
    if wanted is not None and wanted not in _EVENT_TYPES:
        close = nearest(wanted, _EVENT_TYPES)
        advice = (
            "docs/reference/events.md lists them" if close is None else f"did you mean {close}?"
        )
        tell(f"there is no event type {shown(wanted)}; {advice}")


def _print_event(recorded: RecordedEvent, as_json: bool) -> None:
    envelope = recorded.envelope
    if as_json:
        print_json({"envelope": envelope, "event": recorded.event})
        return
    step = getattr(recorded.event, "step", None) or ""
    say(
        f"{envelope.stream_version:>6}  {envelope.event_time}"
        f"  {shown(envelope.event_type):<22}  {shown(step)}".rstrip()
    )


@executions.command()
@_execution
@options.as_json_lines
def effects(execution: ExecutionId, as_json: bool) -> None:
    """Show which side effects fired, ran again or are in doubt.

    A cycle is EXECUTION/STEP/VISIT/ROW/TASK/RUN, and the key that its target was sent. Loops name
    what is no plain fire and count the rest by frame: STEP/VISIT/FIRST ROW/... Doubts are workers
    that were lost and may have fired it too: a target that honours keys did it once all the same.
    """
    entries = asyncio.run(_effects(execution))
    if as_json:
        for entry in entries:
            print_json(entry)
        return
    if not entries:
        tell("no effects recorded")
        return
    rows = [
        (e.state, e.count, e.doubts or None, _cycle(e), "yes" if e.adopted else None, e.time)
        for e in entries
    ]
    print_table(("state", "count", "doubts", "cycle", "adopted", "time"), rows)
    counts = counted(entries)
    tell(
        f"{counts.fired:,} fired, {counts.adopted:,} adopted by a later worker,"
        f" {counts.repeated:,} ran again, {counts.in_doubt:,} in doubt"
    )
    if counts.in_doubt:
        tell("in doubt: look for the key at its target; nothing else knows whether it happened")


def _cycle(entry: EffectEntry) -> str:
    """Without a task it is one of the step's, or those of a whole frame."""
    return entry.cycle if entry.task is not None else f"{entry.cycle}/..."


def _why(view: ExecutionView) -> dict[str, str | None]:
    """A person who cancels gives a reason, and that is no error."""
    if view.error_kind is None:
        return {"error" if view.status != "CANCELLED" else "reason": view.error}
    return {"error": f"{view.error_kind}: {view.error}"}


def _spent(view: ExecutionView) -> str | None:
    return None if view.duration_seconds is None else seconds_shown(view.duration_seconds)


def _loop_name(loop: LoopProgress) -> str:
    return f"loop {loop.step}" if loop.visit == 1 else f"loop {loop.step}, visit {loop.visit}"


def _loop(loop: LoopProgress) -> str:
    total = "" if loop.total is None else f" of {loop.total:,}"
    skipped = f", {loop.skipped:,} not run" if loop.skipped else ""
    return f"{loop.done + loop.failed:,}{total} rows, {loop.failed:,} failed{skipped} ({loop.mode})"


def _is_left(settings: Settings) -> bool:
    """Whether no process runs anything here; whoever shares a log may do so elsewhere."""
    return settings.log_url == "sqlite:" and holder_of(settings) is None


def _next(view: ExecutionView, *, is_left: bool) -> list[str]:
    """The commands that people want after this answer."""
    execution = view.execution_id
    if view.status == "PAUSED" or (view.status not in TERMINAL and is_left):
        return [f"executions resume {execution}"]
    if view.status not in TERMINAL:
        return [f"explain {execution}", f"executions watch {execution}"]
    if view.status == "COMPLETED":
        return []
    return [f"executions events {execution}", f"executions retry {execution}"]


@asynccontextmanager
async def _reading(settings: Settings) -> AsyncIterator[tuple[Executions, Scope]]:
    async with open_platform(settings, create=False) as platform:
        stores = platform.log, platform.projections, platform.results
        yield Executions(*stores), settings.scope


async def _list(status: str | None, path: str | None, limit: int) -> list[ExecutionView]:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        if holder_of(settings) is None:  # nobody keeps the read models up to date
            projector = Projector(platform.log, platform.projections, platform.snapshots)
            while await projector.advance():
                pass
        executions = Executions(platform.log, platform.projections, platform.results)
        wanted = None if status is None else status.upper()
        return await executions.list(settings.scope, status=wanted, path=path, limit=limit)


async def _show(execution: ExecutionId) -> tuple[ExecutionView, dict[StepName, str]]:
    async with _reading(load_settings()) as (executions, scope):
        view = await executions.show(scope, execution)
        if view.event_count > STEPS_EVENTS_MAX:
            return view, {}
        steps = (await executions.state(scope, execution)).steps
        return view, {name: step.status for name, step in steps.items()}


async def _effects(execution: ExecutionId) -> list[EffectEntry]:
    async with _reading(load_settings()) as (executions, scope):
        return await executions.effects(scope, execution)


async def _events(
    execution: ExecutionId, given: dict[str, Any], *, is_all: bool, as_json: bool
) -> int | None:
    """Printed page by page, so that memory holds one; the last version when there may be more."""
    async with _reading(load_settings()) as (executions, scope):
        while True:
            page = await executions.events(scope, execution, **given)
            for recorded in page:
                _print_event(recorded, as_json)
            if len(page) < given["limit"]:
                return None
            given = {**given, "after_version": page[-1].envelope.stream_version}
            if not is_all:
                return page[-1].envelope.stream_version
