"""The `noetl` command. Answers go to stdout, everything else to stderr."""

import sys

import click

from noetl import __version__
from noetl.cli.lazy import LazyCommands
from noetl.cli.output import tell
from noetl.kernel.errors import NoETLError, PlaybookInvalid, RequestInvalid, SettingInvalid
from noetl.kernel.errors.advice import advised

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TRY_AGAIN = 3

_PLACES = {
    "credentials": "noetl.cli.credentials:credentials",
    "dev": "noetl.cli.dev:dev",
    "doctor": "noetl.cli.doctor:doctor",
    "executions": "noetl.cli.executions:executions",
    "explain": "noetl.cli.explain:explain",
    "log": "noetl.cli.log:log",
    "playbooks": "noetl.cli.playbooks:playbooks",
    "replay": "noetl.cli.replay:replay",
    "results": "noetl.cli.results:results",
    "run": "noetl.cli.run:run",
    "worker": "noetl.cli.worker:worker",
}


@click.group(
    commands=LazyCommands(_PLACES), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="noetl")
def commands() -> None:
    """An event-sourced runtime for data playbooks.

    Settings are environment variables; see `docs/reference/settings.md`.
    """


def main() -> None:
    """Exit codes: 0 done, 1 no, 2 wrong usage, 3 try again."""
    try:
        commands(standalone_mode=False)
    except NoETLError as error:
        tell(f"{error.code}: {advised(error)}")
        sys.exit(_exit_code(error))
    except click.ClickException as error:
        _explain(error)
        sys.exit(error.exit_code)
    except click.Abort:
        tell("stopped")
        sys.exit(EXIT_FAILED)
    except OSError as error:  # stdout is a full disk, a folder is not ours, …
        tell(f"the system refused: {error}")
        sys.exit(EXIT_FAILED)


def _explain(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    tell(f"usage: {_in_words(error.format_message())}")
    context = getattr(error, "ctx", None)
    if context is not None:
        tell(f"help: {context.command_path} --help")


def _in_words(message: str) -> str:
    """What the library calls its types means nothing to who typed a wrong word."""
    for named, meant in (("integer", "whole number"), ("float", "number")):
        message = message.replace(f"is not a valid {named} range", f"is not a {meant}")
        message = message.replace(f"is not a valid {named}", f"is not a {meant}")
    if message.startswith("Got unexpected extra argument") and "=" in message:
        message = f"{message.rstrip('.')}; write KEY=VALUE without blanks around the sign"
    return message


def _exit_code(error: NoETLError) -> int:
    if isinstance(error, (SettingInvalid, PlaybookInvalid)) or type(error) is RequestInvalid:
        return EXIT_USAGE
    return EXIT_TRY_AGAIN if error.retryable else EXIT_FAILED
