"""`noetl executions cancel, pause, resume, retry`: through whoever runs the execution."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import click

from noetl.bootstrap.home_asking import asked_of_holder
from noetl.bootstrap.home_requests import HomeAnswer, HomeRequest
from noetl.bootstrap.running import system_clock
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.connection import Reach, connected
from noetl.cli.ending import EXIT_DONE, leave_the_rest, left, report
from noetl.cli.following import Following, until_over
from noetl.cli.output import print_json, tell
from noetl.cli.runs import Nobody, Runs
from noetl.cli.watch import watched
from noetl.kernel.errors import StateRefuses
from noetl.kernel.ids import ExecutionId, StepName

Act = Callable[[Runs], Awaitable[None]]

NO_WAIT = 0.0
"""A home that was free a moment ago is taken by somebody who has nothing to do with this."""

_execution = click.argument("execution", metavar="ID", type=ExecutionId)
_reason = click.option("--reason", help="Why, for the record.")
_detach = click.option(
    "--detach", "is_detached", is_flag=True, help="Do not wait for the end; needs a server."
)


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How to go on to the end, or not."""

    reach: Reach
    as_json: bool
    is_quiet: bool
    is_detached: bool


@click.command()
@_execution
@_reason
@click.option("--no-cascade", is_flag=True, help="Leave its sub-playbooks running.")
@options.is_sure
@options.server
@options.as_json
def cancel(execution: ExecutionId, is_sure: bool, as_json: bool, **given: Any) -> None:
    """End an execution, and the sub-playbooks it started. What was recorded stays.

    \b
    noetl executions cancel ID --reason "wrong month" --yes
    """
    options.ask(f"cancel the execution {execution}?", is_sure)
    asyncio.run(_cancel(execution, as_json, given))


@click.command()
@_execution
@_reason
@options.server
@options.as_json
def pause(execution: ExecutionId, reason: str | None, server: str | None, as_json: bool) -> None:
    """Start nothing new in an execution; what runs comes to its end."""
    asyncio.run(_pause(execution, reason, server))
    if as_json:
        print_json({"execution_id": execution, "status": "PAUSED"})
    else:
        tell(f"paused: go on with: noetl executions resume {execution}")


@click.command()
@_execution
@_detach
@options.server
@options.timeout
@options.quiet
@options.as_json
def resume(execution: ExecutionId, **given: Any) -> None:
    """Go on with an execution that was paused or left.

    Without a server it runs here, to its end, as with `noetl run`.

    \b
    noetl executions resume ID
    """

    began = system_clock().now()

    async def act(runs: Runs) -> None:
        try:
            await runs.resume(execution)
        except StateRefuses:
            # Opening the engine goes on with what was open, and may have come to its end.
            if not await runs.has_ended_since(execution, began):
                raise

    sys.exit(asyncio.run(_resumed(execution, act, _manner(given))))


@click.command()
@_execution
@click.option("--from", "step", metavar="STEP", help="Default: the step that failed.")
@_reason
@_detach
@options.server
@options.timeout
@options.quiet
@options.as_json
def retry(execution: ExecutionId, step: StepName | None, reason: str | None, **given: Any) -> None:
    """Run an ended execution again, from the failed step or another.

    Effects that were recorded are not repeated. Without a server it runs here, to its end.

    \b
    noetl executions retry ID --from load
    """

    async def act(runs: Runs) -> None:
        await runs.retry(execution, step, reason)

    sys.exit(asyncio.run(_carried_on(execution, act, _manner(given))))


def _manner(given: dict[str, Any]) -> Manner:
    return Manner(
        reach=Reach(given["server"], given["timeout"]),
        as_json=given["as_json"],
        is_quiet=given["is_quiet"],
        is_detached=given["is_detached"],
    )


async def _cancel(execution: ExecutionId, as_json: bool, given: dict[str, Any]) -> None:
    asked = HomeRequest(
        act="cancel",
        execution_id=execution,
        reason=given["reason"],
        cascade=not given["no_cascade"],
    )
    cancelled = await _cancelled(asked, given["server"])
    if as_json:
        print_json({"execution_id": execution, "status": "CANCELLED", "cancelled": cancelled})
        return
    for each in cancelled:
        tell(f"cancelled: execution {each}")


async def _cancelled(asked: HomeRequest, server: str | None) -> list[ExecutionId]:
    answer = await _asked(server, asked)
    if answer is not None:
        return answer.cancelled
    reach = Reach(server, NO_WAIT, does_work=False)
    async with connected(load_settings(), reach, Nobody()) as runs:
        return await runs.cancel(asked.execution_id, asked.reason, cascade=asked.cascade)


async def _pause(execution: ExecutionId, reason: str | None, server: str | None) -> None:
    asked = HomeRequest(act="pause", execution_id=execution, reason=reason)
    if await _asked(server, asked) is not None:
        return
    reach = Reach(server, NO_WAIT, does_work=False)
    async with connected(load_settings(), reach, Nobody()) as runs:
        await runs.pause(execution, reason)


async def _asked(server: str | None, request: HomeRequest) -> HomeAnswer | None:
    """Of a process that holds the home and does not listen; None when that is not the case."""
    return None if server is not None else await asked_of_holder(load_settings(), request)


async def _resumed(execution: ExecutionId, act: Act, manner: Manner) -> int:
    """By whoever runs it, if somebody does: then we look on."""
    asked = HomeRequest(act="resume", execution_id=execution)
    answer = await _asked(manner.reach.server, asked)
    if answer is None or not answer.is_done:
        return await _carried_on(execution, act, manner)
    if manner.is_detached:
        return _detached(execution, manner.as_json)
    following = Following(manner.is_quiet)
    return await watched(execution, following, manner.as_json, manner.reach.seconds_left)


async def _carried_on(execution: ExecutionId, act: Act, manner: Manner) -> int:
    following = Following(manner.is_quiet)
    async with connected(load_settings(), manner.reach, following) as runs:
        if manner.is_detached and not runs.is_server:
            raise click.UsageError("--detach needs a server; start one: noetl dev")
        with following.shown():
            await act(runs)
            if manner.is_detached:
                return _detached(execution, manner.as_json)
            reach = manner.reach
            is_over = await until_over(runs, execution, following.display, reach.seconds_left)
        if not is_over:
            return left(execution, following.status, runs.goes_on, as_json=manner.as_json)
        outcome = await runs.outcome(execution)
        code = report(outcome, as_json=manner.as_json, is_quiet=manner.is_quiet)
        await leave_the_rest(runs, execution)
    return code


def _detached(execution: ExecutionId, as_json: bool) -> int:
    if as_json:
        print_json({"execution_id": execution, "status": "RUNNING"})
    else:
        tell(f"goes on: noetl executions watch {execution}")
    return EXIT_DONE
