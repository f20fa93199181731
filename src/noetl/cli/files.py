"""Files that commands are given, read whole and within a limit; `-` is standard input."""

from pathlib import Path

import click

from noetl.domain.playbook.wording import nearest
from noetl.dsl.load import BYTES_MAX

PATH = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)


def read_file(file: str) -> bytes:
    """One byte more than allowed is enough to know that it is too large."""
    try:
        with click.open_file(file, "rb") as stream:
            data: bytes = stream.read(BYTES_MAX + 1)
            return data
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}{_advice(Path(file), error)}"
        raise click.UsageError(message) from error


def _advice(file: Path, error: OSError) -> str:
    """For a name that is nearly that of a file which is there."""
    if not isinstance(error, FileNotFoundError) or not file.parent.is_dir():
        return ""
    close = nearest(file.name, [each.name for each in file.parent.iterdir() if each.is_file()])
    return "" if close is None else f"; did you mean {file.parent / close}?"
