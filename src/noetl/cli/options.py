"""Options that several commands share, so that they mean and say the same everywhere."""

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
as_json_lines = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object per line."
)
is_sure = click.option("--yes", "is_sure", is_flag=True, help="Do it without asking.")
quiet = click.option("--quiet", "is_quiet", is_flag=True, help="Show no progress.")
server = click.option(
    "--server",
    metavar="URL",
    help="Let this server do it, with NOETL_API_KEY. By default the process that holds NOETL_HOME"
    " does it, or this one.",
)
timeout = click.option(
    "--timeout",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Wait no longer than this; by default as long as it takes.",
)


def ask(question: str, is_sure: bool) -> None:
    """Leaves the program unless a person, or `--yes`, agrees."""
    if not is_sure:
        click.confirm(question, abort=True, err=True)
