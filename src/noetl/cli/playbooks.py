"""`noetl playbooks …`: check playbooks before they run."""

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from noetl.cli.output import print_json
from noetl.dsl.check import Checked, check
from noetl.dsl.load import BYTES_MAX
from noetl.dsl.problems import Problem
from noetl.dsl.schema import playbook_schema


@click.group()
def playbooks() -> None:
    """Check playbooks before they run."""


@playbooks.command(name="check")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def check_files(files: Sequence[str], as_json: bool) -> None:
    """Say everything that is wrong with playbooks, and how to fix it.

    `-` reads standard input. Warnings do not count as wrong. Exit code 0 when every file is in
    order, 1 when one is not, 2 when one cannot be read.
    """
    answers = {file: check(_read(file)) for file in files}
    for file, checked in answers.items():
        if as_json:
            print_json(_as_json(file, checked))
        else:
            _print(file, checked)
    failed = [file for file, checked in answers.items() if not checked.is_sound]
    if failed and not as_json:
        click.echo(_summary(answers, len(failed)), err=True)
    sys.exit(1 if failed else 0)


@playbooks.command()
def schema() -> None:
    """Print the JSON Schema of the language, for editors."""
    click.echo(msgspec.json.format(msgspec.json.encode(playbook_schema()), indent=2))


def _read(file: str) -> bytes:
    """One byte more than allowed is enough to know that it is too large."""
    try:
        with click.open_file(file, "rb") as stream:
            data: bytes = stream.read(BYTES_MAX + 1)
            return data
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error


def _print(file: str, checked: Checked) -> None:
    for problem in checked.problems:
        click.echo(_line(file, problem))
    if checked.playbook is not None:
        click.echo(f"{file}: ok, {_count(len(checked.playbook.steps), 'step')}")


def _line(file: str, problem: Problem) -> str:
    place = f"{file}:{problem.line}:{problem.column}"
    return f"{place}: {problem.severity}: {problem.message}; {problem.fix}"


def _summary(answers: dict[str, Checked], failed: int) -> str:
    problems = [problem for checked in answers.values() for problem in checked.problems]
    errors = sum(problem.severity == "error" for problem in problems)
    return f"{_count(errors, 'error')} in {failed} of {_count(len(answers), 'file')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _as_json(file: str, checked: Checked) -> dict[str, Any]:
    return {
        "file": file,
        "ok": checked.is_sound,
        "digest": checked.digest,
        "problems": [msgspec.to_builtins(problem) for problem in checked.problems],
    }
