"""`noetl executions trace`: where a step's result came from."""

import asyncio

import click

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.output import count, print_json, say, shown, tell
from noetl.kernel.ids import ExecutionId, StepName
from noetl.runtime.result_index import ResultEntry
from noetl.runtime.trace import VISITS_SHOWN_MAX, StepTrace, TraceRequest, Traces
from noetl.runtime.trace_visits import TracedLoop, TracedTask, TracedVisit


@click.command()
@click.argument("execution", metavar="ID", type=ExecutionId)
@click.argument("step", type=StepName)
@click.option("--visit", type=click.IntRange(1), help="Which visit; the newest without it.")
@click.option("--after", type=click.IntRange(0), default=0, help="Visits to pass over.")
@click.option("--limit", type=click.IntRange(1, VISITS_SHOWN_MAX), default=100, show_default=True)
@options.as_json
def trace(
    execution: ExecutionId, step: StepName, visit: int | None, as_json: bool, **page: int
) -> None:
    """Show where a step's result came from, back to the start.

    \b
    noetl executions trace 380519836747313152 store --visit 2
    """
    found = asyncio.run(_trace(execution, step, visit, page))
    if as_json:
        print_json(found)
        return
    for each in found.visits:
        _say_visit(each)
    if found.parent_execution_id is not None:
        asked_by = "" if found.parent_step is None else f", step {shown(found.parent_step)}"
        say(f"asked for by execution {found.parent_execution_id}{asked_by}")
    if found.next_after is not None:
        tell(f"{found.total:,} visits in all; more: --after {found.next_after}")


async def _trace(
    execution: ExecutionId, step: StepName, visit: int | None, page: dict[str, int]
) -> StepTrace:
    settings = load_settings()
    async with open_platform(settings, create=False) as platform:
        request = TraceRequest(
            scope=settings.scope, execution_id=execution, step=step, visit=visit, **page
        )
        return await Traces(platform.log).trace(request)


def _say_visit(visit: TracedVisit) -> None:
    status = f"{visit.status.lower()}{_came_from(visit)}"
    say(f"{shown(visit.step)} visit {visit.visit}: {status}")
    if visit.loop is not None:
        say(f"  loop    {_loop(visit.loop)}")
    for task in visit.tasks:
        say(f"  task    {_task(task)}")
    if visit.task_count > len(visit.tasks):
        say(f"  task    … {visit.task_count - len(visit.tasks):,} more")
    for child in visit.children:
        say(f"  child   {child}")
    if visit.result is not None:
        say(f"  result  {_result(visit.result)}")
    if visit.error is not None:
        say(f"  error   {shown(visit.error.kind)}: {shown(visit.error.message)}")


def _came_from(visit: TracedVisit) -> str:
    if not visit.entered_from:
        return ""
    arcs = [f"{shown(arc['step'])} visit {arc['visit']}" for arc in visit.entered_from]
    return f", entered from {', '.join(arcs)}"


def _loop(loop: TracedLoop) -> str:
    rows = "" if loop.rows is None else f" of {loop.rows:,}"
    lost = f", {loop.frames_lost:,} lost" if loop.frames_lost else ""
    return (
        f"{loop.rows_done + loop.rows_failed:,}{rows} rows, {loop.rows_failed:,} failed,"
        f" in {count(loop.frames, 'frame')}{lost} ({loop.mode})"
    )


def _task(task: TracedTask) -> str:
    run = "" if task.run == 1 else f" run {task.run}"
    effect = "" if task.effect is None else f", {task.effect}"
    if task.error is not None:
        return f"{shown(task.task)}{run}: failed with {shown(task.error.kind)}{effect}"
    where = "not ended" if task.result is None else _result(task.result)
    return f"{shown(task.task)}{run}: {where}{effect}"


def _result(entry: ResultEntry) -> str:
    size = "" if entry.byte_length is None else f", {count(entry.byte_length, 'byte')}"
    rows = "" if entry.row_count is None else f", {count(entry.row_count, 'row')}"
    tier = "in the step's result" if entry.tier == "part" else entry.tier
    return f"{shown(entry.uri)} ({tier}{size}{rows})"
