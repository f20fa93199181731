"""`noetl run`: a playbook to its end, with its progress on stderr and its result on stdout."""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import click

from noetl.bootstrap.checking import check
from noetl.bootstrap.settings import load_settings
from noetl.cli import options
from noetl.cli.connection import Reach, connected
from noetl.cli.ending import EXIT_USAGE, leave_the_rest, left, report
from noetl.cli.files import PATH, read_file
from noetl.cli.following import Following, until_over
from noetl.cli.output import tell
from noetl.cli.problems import problem_line
from noetl.cli.references import folder_advice, is_file, parse_reference
from noetl.cli.runs import Runs
from noetl.cli.values import doubts, missing, payload_of
from noetl.dsl.check import Checked
from noetl.kernel.errors import EntryNotFound
from noetl.kernel.ids import ExecutionId


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was asked for, checked as far as it can be without the stores."""

    reference: str  # a path of the catalogue; of a file that was registered when it is empty
    texts: list[bytes]  # to register first; the one to run is the last
    payload: dict[str, Any]
    reach: Reach
    as_json: bool
    is_quiet: bool


@click.command()
@click.argument("reference", metavar="REF")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A value of the workload; dots make maps, JSON makes lists. Repeatable.",
)
@click.option("--payload", help="Values of the workload as a JSON map.")
@click.option("--input", "input_file", type=PATH, help="The same from a JSON or YAML file.")
@click.option(
    "--with",
    "others",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Register this playbook first, for a step that names its path. Repeatable.",
)
@options.as_json
@options.quiet
@options.server
@options.timeout
def run(reference: str, as_json: bool, is_quiet: bool, **given: Any) -> None:
    """Run a playbook and wait for its result.

    REF is a file, which is registered under its own path, or a path of the catalogue: PATH or
    PATH@VERSION. Ctrl-C cancels; a second one leaves at once. SIGTERM leaves too, in good order.
    Exit code 0 when it completed, 1 when it failed or was cancelled, 2 when something about the
    order is wrong, 3 when the time is over or it was left.

    `--json` prints one object, always with the same fields: execution_id, status, result, error,
    events and duration_seconds. When it was left, status says RUNNING or PAUSED and the rest is
    null; the execution goes on with the server, or with `noetl executions resume`.

    \b
    noetl run hello.yaml --set who=Ada
    noetl run guides/hello@2 --json --timeout 60
    """
    payload = payload_of(given["input_file"], given["payload"], given["settings"])
    files = [*given["others"], *([reference] if is_file(reference) else ())]
    checked = [_checked(file, is_quiet) for file in files]
    if is_file(reference):
        for doubt in [*doubts(given["settings"], *checked[-1]), *missing(checked[-1][1], payload)]:
            tell(doubt)
    order = Order(
        reference="" if is_file(reference) else reference,
        texts=[text for text, _ in checked],
        payload=payload,
        reach=Reach(given["server"], given["timeout"]),
        as_json=as_json,
        is_quiet=is_quiet,
    )
    try:
        code = asyncio.run(_run(order))
    except EntryNotFound as error:  # nothing ran, so this is not the 1 of a failed execution
        tell(f"{error.code}: {folder_advice(reference) or error}")
        code = EXIT_USAGE
    sys.exit(code)


def _checked(file: str, is_quiet: bool) -> tuple[bytes, Checked]:
    """Before anything is opened: a wrong file leaves no trace."""
    text = read_file(file)
    checked = check(text)
    for problem in checked.problems:
        if problem.severity == "error" or not is_quiet:
            tell(problem_line(file, problem))
    if checked.playbook is None:
        raise click.UsageError(f"{file} cannot run as it is; nothing was started")
    return text, checked


async def _run(order: Order) -> int:
    following = Following(order.is_quiet, shows_printed=not order.as_json)
    async with connected(load_settings(), order.reach, following) as runs:
        with following.shown():
            execution = await _started(runs, order)
            is_over = await until_over(runs, execution, following.display, order.reach.seconds_left)
        if not is_over:
            return left(execution, following.status, runs.goes_on, as_json=order.as_json)
        outcome = await runs.outcome(execution)
        code = report(outcome, as_json=order.as_json, is_quiet=order.is_quiet)
        await leave_the_rest(runs, execution)
    return code


async def _started(runs: Runs, order: Order) -> ExecutionId:
    registered = [await runs.register(text) for text in order.texts]
    path, version = parse_reference(order.reference) if order.reference else registered[-1]
    return await runs.start(path, version, order.payload)
