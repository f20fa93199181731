"""`noetl executions stages` and `frames`: what an execution handed out, to whom, and what became
of it."""

import asyncio
from typing import Any

import click

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.output import print_json, print_table, tell
from noetl.domain.projection import QUERY_RECORDS_MAX
from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.instant import Instant, seconds_between
from noetl.runtime.lineage import FramesAsked, FrameShown, Lineage, StageShown

_execution = click.argument("execution", metavar="ID", type=ExecutionId)


@click.command()
@_execution
@options.as_json_lines
def stages(execution: ExecutionId, as_json: bool) -> None:
    """Show the stages of an execution: its loops and fan-outs, their frames and rows.

    A parent is the stage whose row asked for this execution.
    """
    found = asyncio.run(_stages(execution))
    if as_json:
        for row in found:
            print_json(row)
        return
    if not found:
        tell("no stages; only loops have them")
        return
    counts = ("frames", "lost", "failed", "rows")
    heads = ("stage", "step", "kind", "status", *counts, "started", "seconds", "parent")
    print_table(heads, [_stage(row) for row in found])
    tell(f"next: noetl executions frames {execution} --stage {found[-1].stage_id}")


@click.command()
@_execution
@click.option("--stage", "stage_id", type=StageId, help="Only frames of this stage.")
@click.option("--status", help="Only frames in this state, e.g. running.")
@click.option("--after", default="", help="The last id of the page before.")
@click.option("--limit", type=click.IntRange(1, QUERY_RECORDS_MAX), default=100, show_default=True)
@options.as_json_lines
def frames(execution: ExecutionId, as_json: bool, **given: Any) -> None:
    """Show the frames of an execution: their rows, holders, attempts and parents.

    A frame's parent is the one that its stage handed out before it.

    \b
    noetl executions frames ID --status running
    """
    status = given["status"]
    asked = FramesAsked(**{**given, "status": None if status is None else status.upper()})
    found = asyncio.run(_frames(execution, asked))
    if as_json:
        for row in found:
            print_json(row)
        return
    if not found:
        tell("no such frames")
        return
    counts = ("rows", "failed", "attempts")
    heads = ("frame", "stage", "number", "status", *counts, "seconds", "owner", "parent")
    print_table(heads, [_frame(row) for row in found])
    if len(found) == asked.limit:
        tell(f"more: --after {found[-1].frame_id}")


def _stage(row: StageShown) -> tuple[object, ...]:
    step = row.step if row.visit == 1 else f"{row.step} visit {row.visit}"
    counts = row.frame_count, row.frames_abandoned, row.frames_failed, row.row_count
    times = row.started_at, _seconds(row.started_at, row.ended_at)
    return row.stage_id, step, row.stage_kind, row.status, *counts, *times, row.parent_stage_id


def _frame(row: FrameShown) -> tuple[object, ...]:
    counts = row.row_count, row.rows_failed, row.attempts
    place = row.frame_id, row.stage_id, row.ordinal, row.status
    seconds = _seconds(row.started_at, row.completed_at)
    return *place, *counts, seconds, row.worker_id, row.parent_frame_id


def _seconds(began: Instant | None, ended: Instant | None) -> str | None:
    """Of its last holder, of a frame; None while it is open."""
    return None if began is None or ended is None else f"{seconds_between(began, ended):.3f}"


async def _stages(execution: ExecutionId) -> list[StageShown]:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        lineage = Lineage(platform.log, platform.projections)
        return await lineage.stages(settings.scope, execution)


async def _frames(execution: ExecutionId, asked: FramesAsked) -> list[FrameShown]:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        lineage = Lineage(platform.log, platform.projections)
        return await lineage.frames(settings.scope, execution, asked)
