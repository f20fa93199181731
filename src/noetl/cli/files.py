"""Files that commands are given, read whole and within a limit; `-` is standard input."""

import click

from noetl.dsl.load import BYTES_MAX

PATH = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)


def read_file(file: str) -> bytes:
    """One byte more than allowed is enough to know that it is too large."""
    try:
        with click.open_file(file, "rb") as stream:
            data: bytes = stream.read(BYTES_MAX + 1)
            return data
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
