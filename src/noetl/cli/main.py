"""The `noetl` command. Answers go to stdout, everything else to stderr."""

import sys

import click

from noetl import __version__
from noetl.cli.log import log
from noetl.cli.playbooks import playbooks
from noetl.cli.replay import replay
from noetl.kernel.errors import NoETLError, SettingInvalid

EXIT_USAGE = 2
EXIT_TRY_AGAIN = 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="noetl")
def commands() -> None:
    """An event-sourced runtime for data playbooks.

    Settings are environment variables; see `docs/reference/settings.md`.
    """


commands.add_command(log)
commands.add_command(playbooks)
commands.add_command(replay)


def main() -> None:
    """Exit codes: 0 done, 1 no, 2 wrong usage, 3 try again."""
    try:
        commands(standalone_mode=False)
    except NoETLError as error:
        click.echo(f"{error.code}: {error}", err=True)
        sys.exit(_exit_code(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(1)
    except OSError as error:  # stdout is a full disk, a folder is not ours, …
        click.echo(f"the system refused: {error}", err=True)
        sys.exit(1)


def _exit_code(error: NoETLError) -> int:
    if isinstance(error, SettingInvalid):
        return EXIT_USAGE
    return EXIT_TRY_AGAIN if error.retryable else 1
